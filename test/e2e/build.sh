#!/bin/sh
# Builds into .bin what the end-to-end test runs: etcd, kube-apiserver, kube-scheduler,
# NFD, helm and kustomize where those that are asked for do not lie there yet, and always
# the programs of this repository. Into .bin/old: those of the commit OLD_REF, from which
# TestUpgrade upgrades. With -short, what slow tests alone run is not built: these and Helm 4.
set -eu
case " $* " in *" -short "*) short=1 ;; *) short= ;; esac
OLD_REF=${OLD_REF:-86a548f}
cd "$(dirname "$0")"
export CGO_ENABLED=0

build() { # build NAME DIRECTORY PACKAGE [LDFLAGS]
	echo "building $1 ..."
	go build -C "$2" -o "$PWD/.bin/$1" -ldflags "-s -w ${4-}" "$3"
}

install_tool() { # install_tool NAME PACKAGE@VERSION, with the dependencies it was released with
	echo "building $1 ..."
	GOBIN="$PWD/.bin" go install -ldflags "-s -w" "$2"
}

module() { # module PATH@VERSION prints the directory of a module that we need no package of
	go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

mkdir -p .bin
build gdr-features ../.. ./cmd/gdr-features
build gdr-features-agent ../.. ./cmd/gdr-features-agent
build kubectl-gdr ../.. ./cmd/kubectl-gdr
build mktree ../.. ./test/machine/mktree
build pages ../.. ./test/pages/list
build slices ../dra ./slices

# What was published before. Without it everything else can be built and tested.
if [ "$short" ]; then
	:
elif ref=$(git rev-parse --quiet --verify "$OLD_REF^{commit}"); then
	if [ "$ref" != "$(cat .bin/old/ref 2>/dev/null)" ]; then
		rm -rf .bin/old
		mkdir .bin/old
		(cd ../.. && git archive "$ref") | tar -x -C .bin/old
		build old/bin/gdr-features .bin/old ./cmd/gdr-features
		build old/bin/gdr-features-agent .bin/old ./cmd/gdr-features-agent
		echo "$ref" >.bin/old/ref
	fi
else
	rm -rf .bin/old
	echo "$0: this clone has no commit $OLD_REF, so TestUpgrade will fail: git fetch --unshallow" >&2
fi

helm4=helm.sh/helm/v4/cmd/helm@v4.3.1
if [ -z "$short" ] && [ "$helm4" != "$(cat .bin/helm4/stamp 2>/dev/null)" ]; then
	echo "building helm4 ..."
	GOBIN="$PWD/.bin/helm4" go install -ldflags "-s -w" "$helm4"
	echo "$helm4" >.bin/helm4/stamp
fi

stamp=$(go version && sha256sum build.sh go.mod go.sum)
if [ "$stamp" = "$(cat .bin/stamp 2>/dev/null)" ]; then
	exit 0
fi
rm -f .bin/stamp
echo "and the servers, 10 programs: the first time this takes minutes"
nfd=sigs.k8s.io/node-feature-discovery
# The linker alone can set where NFD looks for feature files. A relative name
# gives each worker its own.
features="-X $nfd/source/local.featureFilesDir=features.d/"
build etcd . go.etcd.io/etcd/server/v3
# Charts ask for a version, which the linker sets in releases of Kubernetes too.
build kube-apiserver . k8s.io/kubernetes/cmd/kube-apiserver "-X k8s.io/component-base/version.gitVersion=v1.35.3"
build kube-scheduler . k8s.io/kubernetes/cmd/kube-scheduler
build kubectl . k8s.io/kubernetes/cmd/kubectl
build nfd-master . $nfd/cmd/nfd-master
build nfd-worker . $nfd/cmd/nfd-worker "$features"
build nfd-gc . $nfd/cmd/nfd-gc
build nfd . $nfd/cmd/nfd "$features"
install_tool helm helm.sh/helm/v3/cmd/helm@v3.22.0
install_tool kustomize sigs.k8s.io/kustomize/kustomize/v5@v5.8.2

echo "fetching the resources of operators and schedulers ..."
# NFD as its users deploy it: resources, service accounts, roles.
.bin/kustomize build "$(go list -m -f '{{.Dir}}' $nfd)/deployment/overlays/default" >.bin/nfd.yaml
# The resources of the Prometheus Operator, and of NVIDIA's operators with a chart.
# Of NVIDIA's, the newest versions that are Go modules: their release tags (v24.6
# and so on) are not.
gpu=$(module github.com/NVIDIA/gpu-operator@v1.8.3-0.20240429200431-0fe1e8db32b0)
nic=$(module github.com/Mellanox/network-operator@v1.4.0)
prometheus=$(module github.com/prometheus-operator/prometheus-operator@v0.89.0)/example/prometheus-operator-crd
cat "$gpu/config/crd/bases/nvidia.com_clusterpolicies.yaml" "$gpu/config/crd/bases/nvidia.com_nvidiadrivers.yaml" \
	"$nic/config/crd/bases/mellanox.com_nicclusterpolicies.yaml" \
	"$prometheus/monitoring.coreos.com_podmonitors.yaml" "$prometheus/monitoring.coreos.com_prometheusrules.yaml" \
	"$prometheus/monitoring.coreos.com_servicemonitors.yaml" \
	>.bin/operators.yaml
rm -rf .bin/gpu-operator
cp -r "$gpu/deployments/gpu-operator" .bin/gpu-operator
chmod -R u+w .bin/gpu-operator

# The resources of the schedulers that our examples are for, and their source code, which
# names the annotations and the configuration.
kueue=$(module sigs.k8s.io/kueue@v0.19.2)
volcano=$(module volcano.sh/volcano@v1.15.1)
kai=$(module github.com/NVIDIA/KAI-scheduler@v0.12.0)
(
	cd "$kueue/config/components/crd/bases"
	cat kueue.x-k8s.io_resourceflavors.yaml kueue.x-k8s.io_topologies.yaml kueue.x-k8s.io_clusterqueues.yaml kueue.x-k8s.io_localqueues.yaml
	cd "$volcano/config/crd/volcano/bases"
	for file in topology.volcano.sh_hypernodes.yaml batch.volcano.sh_jobs.yaml; do
		echo ---
		cat $file
	done
	echo ---
	cat "$kai/deployments/kai-scheduler/crds/kai.scheduler_topologies.yaml"
) >.bin/schedulers.yaml
ln -sfn "$kueue" .bin/kueue
ln -sfn "$volcano" .bin/volcano
ln -sfn "$kai" .bin/kai

# The resource of the MPI operator, which an example uses.
cp "$(module github.com/kubeflow/mpi-operator@v0.7.0)/manifests/base/kubeflow.org_mpijobs.yaml" .bin/mpijobs.yaml
chmod u+w .bin/mpijobs.yaml
echo "$stamp" >.bin/stamp
