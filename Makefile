# make help lists the targets.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
BINARY   = bin/gdr-features
EXAMPLE  = testdata/machines/dell-xe9680-h100.txt
FUZZTIME ?= 20s

GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.11.0
GOVULNCHECK   = golang.org/x/vuln/cmd/govulncheck@v1.1.4
# Prints what go test -v prints, and at the end what failed, with the output of that test alone.
GOTESTSUM     = gotest.tools/gotestsum@v1.13.0 --format standard-verbose --hide-summary skipped --

# Flags of tests that depend on more than the cache of go test knows. The limit is for a test that hangs, not for a
# slow machine.
UNCACHED = -count=1 -timeout 60m

export CGO_ENABLED = 0

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## build the programs into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gdr-features ./cmd/gdr-features-agent ./cmd/kubectl-gdr

.PHONY: build-all
build-all: ## build for every platform into bin/OS-ARCH/: kubectl-gdr for Linux, macOS and Windows, the rest for Linux
	@./hack/build-all.sh '$(LDFLAGS)'

.PHONY: run
run: build ## show this machine; if it has no GPU, show an example machine too
	@./hack/run.sh $(BINARY) $(EXAMPLE)

.PHONY: test
test: ## run the tests: some machines with the race detector, all of them without
	@GO='$(GO)' ./hack/test.sh

.PHONY: test-long
test-long: ## run all tests on all machines and inputs, with the race detector; minutes
	@GO='$(GO)' ./hack/test.sh long

.PHONY: test-budget
test-budget: ## say when make test takes longer than 100 s with a warm build cache
	@./hack/test-budget.sh

.PHONY: lint
lint: ## run the linters of .golangci.yml and check that go.mod is tidy
	$(GO) mod tidy -diff
	$(GO) list -m all > /dev/null
	$(GO) run $(GOLANGCI_LINT) run ./...
	$(GO) run $(GOLANGCI_LINT) run --build-tags image,release,packages,vm,faults,nccl,frameworks,worker,slurm ./test/... ./nfdsource
	cd hack/release && $(GO) mod tidy -diff
	cd hack/release && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd examples/nfd-worker && $(GO) mod tidy -diff
	cd examples/nfd-worker && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd examples/levels && $(GO) mod tidy -diff
	cd examples/levels && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/chart && $(GO) mod tidy -diff
	cd test/chart && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/monitoring && $(GO) mod tidy -diff
	cd test/monitoring && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/browser && $(GO) mod tidy -diff
	cd test/browser && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/dra && $(GO) mod tidy -diff
	cd test/dra && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/e2e && $(GO) mod tidy -diff
	cd test/e2e && $(GO) run $(GOLANGCI_LINT) run --config ../../.golangci.yml --build-tags fleet,gpuoperator,compatibility ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (20s)
	@./hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## measure CPU and memory against a bare C program and ghw (needs gcc and pci.ids)
	$(GO) run ./bench $(BENCHFLAGS)

.PHONY: golden
golden: ## update the golden files with what the program prints now; review the diff
	$(GO) test ./cmd/gdr-features -run TestGolden -update
	git status --short testdata/golden

.PHONY: pages
pages: ## update what README.md and docs show of commands; review the diff
	$(GO) test ./cmd/gdr-features -run 'TestPages$$' -update
	git diff --stat '*.md'

.PHONY: man
man: ## update the manual pages in man/ from the commands
	$(GO) test ./cmd/gdr-features -run TestMan -update
	git diff --stat man

.PHONY: man-lint
man-lint: ## check the manual pages (needs mandoc)
	@./hack/man-lint.sh

PREFIX ?= /usr/local
.PHONY: install
install: build ## install programs, manual pages and shell completion below DESTDIR and PREFIX (/usr/local)
	@./hack/install.sh '$(DESTDIR)$(PREFIX)'

.PHONY: cover
cover: ## print the test coverage of each package
	$(GO) test -cover ./cmd/... ./host/... ./internal/... ./nfdsource/... ./source/... ./topology/... ./tristate/... ./verdict/...

.PHONY: e2e
e2e: ## test that labels reach a Node through a real NFD and API server, from a release too; takes minutes the first time (needs buildah, skopeo, rpm)
	@./test/release/build.sh one
	@./test/e2e/build.sh
	cd test/e2e && $(GO) run $(GOTESTSUM) $(UNCACHED) -parallel 8 ./...

.PHONY: compatibility
compatibility: ## test with older versions of NFD and Kubernetes; takes minutes the first time
	@./test/e2e/build.sh
	@./test/e2e/build-compatibility.sh
	cd test/e2e && $(GO) run $(GOTESTSUM) -tags compatibility $(UNCACHED) -run '^Test(Compatibility|OldestKubernetes)$$' .

NODES ?= 5000
.PHONY: fleet
fleet: ## run NODES (5000) agents against one API server and print the load they cause
	@./test/e2e/build.sh
	$(GO) build -o test/e2e/.bin/fleet ./test/fleet
	cd test/e2e && FLEET_NODES=$(NODES) $(GO) test -tags fleet $(UNCACHED) -v -run '^TestFleet$$' .

.PHONY: e2e-vm
e2e-vm: ## test on a real kernel, in a virtual machine with every PCI level (needs qemu-system-x86 and gcc)
	@./test/e2e/build.sh
	@./test/vm/build.sh
	$(GO) test $(UNCACHED) -v -tags vm ./test/vm

.PHONY: faults
faults: build ## test with the writer killed a thousand times, full disks and hanging devices (needs root)
	$(GO) test $(UNCACHED) -v -run TestKilled ./internal/publish/featurefile -kills 1000
	$(GO) test $(UNCACHED) -v -tags faults ./test/faults

.PHONY: slurm
slurm: ## test that Slurm reads topo -o slurm and places jobs by it (needs slurmd, slurmctld, slurm-client and root)
	$(GO) test $(UNCACHED) -tags slurm ./test/slurm

.PHONY: image
image: ## build the image for amd64 and arm64, bin/gdr-features-image.tar (needs buildah)
	@./hack/image.sh bin/gdr-features-image.tar '$(VERSION)' '$(LDFLAGS)'

.PHONY: image-test
image-test: image ## test the image, run as the DaemonSet's Pod (needs root and runc)
	$(GO) test $(UNCACHED) -tags image ./test/image

IMAGE ?= registry.example.com/gdr-features
URL   ?= https://example.com/gdr-features
.PHONY: release
release: ## build a release into dist/: VERSION=v1.0.0 IMAGE=REGISTRY/NAME URL=PAGE-OF-THE-PROJECT (needs buildah)
	$(GO) build -C hack/release -o '$(CURDIR)/bin/release' .
	./bin/release -version '$(VERSION)' -image '$(IMAGE)' -url '$(URL)' -revision '$(REVISION)'

.PHONY: release-test
release-test: ## build a release twice, and test what is in it; push it to a registry and pull it (needs buildah, skopeo, rpm, qemu-user)
	$(GO) test -C hack/release $(UNCACHED) ./...
	@./test/release/build.sh
	$(GO) test $(UNCACHED) -v -tags release ./test/release

.PHONY: package-test
package-test: ## install, use and remove the Debian package on a machine with systemd (needs mmdebstrap, cpio, qemu-system-x86)
	@./test/release/build.sh one
	@./test/packages/build.sh test/release/.bin/one/gdr-features_1.0.0-1_amd64.deb
	$(GO) test $(UNCACHED) -v -tags packages ./test/packages

.PHONY: licenses
licenses: ## write bin/THIRD-PARTY-LICENSES; an error if a module is linked whose license is not allowed
	@mkdir -p bin
	env -u GOOS -u GOARCH $(GO) run -C hack/release ./licenses/collect $(addprefix ./cmd/,gdr-features gdr-features-agent kubectl-gdr) > bin/THIRD-PARTY-LICENSES

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what the programs call (needs vuln.go.dev)
	@./hack/vulncheck.sh $(GOVULNCHECK)

.PHONY: worker-test
worker-test: ## run our sources in NFD's worker, and compare its labels with ours
	$(GO) test $(UNCACHED) -tags worker ./nfdsource
	cd examples/nfd-worker && $(GO) test $(UNCACHED) ./...

.PHONY: importer
importer: ## build and run examples/levels, a module of its own that imports the public packages
	cd examples/levels && $(GO) test $(UNCACHED) ./...

.PHONY: dra
dra: ## compare gdr.align and claim with Kubernetes' own library for DRA drivers and kube-scheduler's allocator
	cd test/dra && $(GO) test $(UNCACHED) ./...
.PHONY: chart
chart: ## test the Helm chart: every value and every pair of values, lint, its README.md; takes minutes the first time
	cd test/chart && $(GO) test $(UNCACHED) ./...

.PHONY: chart-golden
chart-golden: ## update what the Helm chart renders in test/chart/testdata, and its README.md; review the diff
	cd test/chart && $(GO) test $(UNCACHED) ./... -update
	git diff --stat test/chart/testdata deploy/helm

.PHONY: gpu-operator
gpu-operator: ## check deploy/gpu-operator against chart and resources of a GPU Operator, GPU_OPERATOR=DIR (its sources)
	@./test/e2e/build.sh
	cd test/e2e && GPU_OPERATOR='$(abspath $(GPU_OPERATOR))' $(GO) test $(UNCACHED) -v -tags gpuoperator -run '^TestGPUOperator$$' .

.PHONY: rules
rules: ## check and test the alerts and the dashboard with promtool; takes minutes the first time
	@./test/monitoring/build.sh
	cd test/monitoring && $(GO) test $(UNCACHED) ./...

.PHONY: nccl
nccl: ## compare our NCCL ratings with NCCL's own code, NCCL_ORACLE=PROGRAM (see test/nccl/README.md)
	NCCL_ORACLE='$(abspath $(NCCL_ORACLE))' $(GO) test $(UNCACHED) -tags nccl -v ./test/nccl

.PHONY: frameworks
frameworks: build ## ask vLLM's, SGLang's and Mooncake's own code what it makes of env, VLLM_SRC=DIR SGLANG_SRC=DIR MOONCAKE_PARSER=PROGRAM (see test/frameworks/README.md)
	VLLM_SRC='$(abspath $(VLLM_SRC))' SGLANG_SRC='$(abspath $(SGLANG_SRC))' MOONCAKE_PARSER='$(abspath $(MOONCAKE_PARSER))' \
		$(GO) test $(UNCACHED) -tags frameworks -v ./test/frameworks

.PHONY: browser
browser: ## test the pages of topo in a headless Chromium (needs chromium, graphviz, fonts-liberation)
	cd test/browser && $(GO) test $(UNCACHED) ./...

.PHONY: screenshot
screenshot: ## update the README's picture, docs/topo.png (needs chromium, fonts-liberation)
	cd test/browser && $(GO) run . -o ../../docs/topo.png

.PHONY: names
names: ## update source/pci/ids.txt from PCI_IDS=FILE
	$(GO) run ./source/pci/genids $(PCI_IDS) > source/pci/ids.txt.new
	mv source/pci/ids.txt.new source/pci/ids.txt

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
