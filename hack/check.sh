#!/usr/bin/env bash
# Runs the checks that need more than make test does: a long time, tools, root, or the sources
# of others. .ci/run full runs those of the first list.
#   check.sh            lists them, and what each needs
#   check.sh NAME...    runs them
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
go=${GO:-go}

# A test here depends on more than the cache of go test knows. The limit is for a test that
# hangs, not for a slow machine.
uncached=(-count=1 -timeout 60m)
# Prints what go test -v prints, and at the end what failed, with the output of that test alone.
gotestsum=(gotest.tools/gotestsum@v1.13.0 --format standard-verbose --hide-summary skipped --)

within() { # within DIR COMMAND...: runs a command in a directory
	(cd "$1" && shift && "$@")
}

check() {
	case "$1" in
	# In .ci/run full:
	man) ./hack/man-lint.sh ;; #: manual pages (mandoc)
	long) GO=$go ./hack/test.sh long ;; #: all tests, all inputs, with the race detector (5 min)
	licenses) #: the license of each linked module
		mkdir -p bin
		env -u GOOS -u GOARCH "$go" run -C hack/release ./licenses/collect ./cmd/gdr-features ./cmd/gdr-features-agent ./cmd/kubectl-gdr >bin/THIRD-PARTY-LICENSES
		;;
	vulncheck) ./hack/vulncheck.sh golang.org/x/vuln/cmd/govulncheck@v1.1.4 ;; #: known vulnerabilities (vuln.go.dev)
	image) #: the image as the DaemonSet's Pod (root, buildah, runc)
		make build image
		./test/userspace/build.sh bullseye bookworm
		"$go" test "${uncached[@]}" -tags image ./test/image
		;;
	release) #: a release, twice; COLD=1 (buildah, skopeo, rpm, qemu-user)
		"$go" test -C hack/release "${uncached[@]}" ./...
		./test/release/build.sh
		"$go" test "${uncached[@]}" -v -tags release ./test/release
		;;
	package) #: the Debian package (mmdebstrap, cpio, qemu-system-x86)
		./test/release/build.sh one
		./test/packages/build.sh test/release/.bin/one/gdr-features_1.0.0-1_amd64.deb
		"$go" test "${uncached[@]}" -v -tags packages ./test/packages
		;;
	userspace) #: images with the RDMA libraries of four Debians (root)
		./test/userspace/build.sh bullseye bookworm trixie sid
		make build
		"$go" test "${uncached[@]}" -tags userspace ./test/userspace
		;;
	worker) #: our sources in NFD's worker
		"$go" test "${uncached[@]}" -tags worker ./nfdsource
		within examples/nfd-worker "$go" test "${uncached[@]}" ./...
		;;
	slurm) "$go" test "${uncached[@]}" -tags slurm ./test/slurm ;; #: topo -o slurm (slurmd, slurmctld, slurm-client, root)
	importer) within examples/levels "$go" test "${uncached[@]}" ./... ;; #: a module of its own that imports the public packages
	dra) within test/dra "$go" test "${uncached[@]}" ./... ;; #: gdr.align and claim beside Kubernetes' own code
	chart) within test/chart "$go" test "${uncached[@]}" ./... ;; #: every value of the Helm chart, and every pair of values
	rules) #: alerts and dashboard, with promtool
		./test/monitoring/build.sh
		within test/monitoring "$go" test "${uncached[@]}" ./...
		;;
	browser) within test/browser "$go" test "${uncached[@]}" ./... ;; #: the pages of topo (chromium, graphviz, fonts-liberation)
	compatibility) #: older versions of NFD and Kubernetes (6 min)
		./test/e2e/build.sh
		./test/e2e/build-compatibility.sh
		within test/e2e "$go" run "${gotestsum[@]}" -tags compatibility "${uncached[@]}" -run '^Test(Compatibility|OldestKubernetes|VersionsOfKubernetes|DerivedClaim)$' .
		;;
	faults) #: a writer killed 1000 times, full disks, hanging devices (root)
		make build
		"$go" test "${uncached[@]}" -v -run TestKilled ./internal/publish/featurefile -kills 1000
		"$go" test "${uncached[@]}" -v -tags faults ./test/faults
		;;
	mutate) "$go" test "${uncached[@]}" -trimpath -v -tags mutate ./test/mutate -every "${EVERY:-64}" ;; #: do tests notice wrong judgements? EVERY=N (3 min)
	# By hand:
	fleet) #: NODES=5000 agents, RATE=14 a second, one API server (11 min)
		./test/e2e/build.sh
		"$go" build -o test/e2e/.bin/fleet ./test/fleet
		within test/e2e env FLEET_NODES="${NODES:-5000}" FLEET_RATE="${RATE:-14}" "$go" test -tags fleet "${uncached[@]}" -v -run '^TestFleet$' .
		;;
	frameworks) #: env, parsers: {VLLM,SGLANG,MODELEXPRESS}_SRC= MOONCAKE_PARSER=
		make build
		"$go" test "${uncached[@]}" -tags frameworks -v ./test/frameworks
		;;
	gpu-operator) #: deploy/gpu-operator, GPU_OPERATOR=DIR with its sources
		./test/e2e/build.sh
		within test/e2e "$go" test "${uncached[@]}" -v -tags gpuoperator -run '^TestGPUOperator$' .
		;;
	*)
		echo "check.sh: no check $1; hack/check.sh lists them" >&2
		exit 2
		;;
	esac
}

# Tests run in the directory of their package.
for name in VLLM_SRC SGLANG_SRC MODELEXPRESS_SRC MOONCAKE_PARSER GPU_OPERATOR; do
	if [ -n "${!name:-}" ]; then
		export "$name=$(realpath "${!name}")"
	fi
done

if [ $# = 0 ]; then
	sed -n 's/^\t\([a-z-]*\)) .*#: /  \1\t/p; s/^\t# \(.*:\)$/\1/p' hack/check.sh | expand -t 17
	exit
fi
for name in "$@"; do
	check "$name"
done
