module gdr-features

go 1.26.0

require (
	github.com/bombsimon/logrusr/v4 v4.2.0
	github.com/clipperhouse/displaywidth v0.11.0
	github.com/google/go-cmp v0.7.0
	github.com/jaypipes/ghw v0.26.0
	github.com/jaypipes/pcidb v1.1.1
	github.com/prometheus/client_golang v1.25.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/sirupsen/logrus v1.10.2
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/yuin/goldmark v1.7.13
	go.yaml.in/yaml/v4 v4.0.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
	golang.org/x/time v0.15.0
	gopkg.in/evanphx/json-patch.v4 v4.13.0
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
	k8s.io/klog/v2 v2.140.0
	sigs.k8s.io/node-feature-discovery v0.19.0
	sigs.k8s.io/node-feature-discovery/api/nfd v0.19.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	dario.cat/mergo v1.0.1 // indirect
	github.com/Masterminds/goutils v1.1.1 // indirect
	github.com/Masterminds/semver/v3 v3.5.0 // indirect
	github.com/Masterminds/sprig/v3 v3.3.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/cyphar/filepath-securejoin v0.7.0 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/emicklei/go-restful/v3 v3.13.0 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-ole/go-ole v1.2.6 // indirect
	github.com/go-openapi/jsonpointer v1.0.0 // indirect
	github.com/go-openapi/jsonreference v1.0.0 // indirect
	github.com/go-openapi/swag v0.27.1 // indirect
	github.com/go-openapi/swag/cmdutils v0.27.1 // indirect
	github.com/go-openapi/swag/conv v0.27.1 // indirect
	github.com/go-openapi/swag/fileutils v0.27.1 // indirect
	github.com/go-openapi/swag/jsonutils v0.27.1 // indirect
	github.com/go-openapi/swag/loading v0.27.1 // indirect
	github.com/go-openapi/swag/mangling v0.27.1 // indirect
	github.com/go-openapi/swag/netutils v0.27.1 // indirect
	github.com/go-openapi/swag/pools v0.27.1 // indirect
	github.com/go-openapi/swag/stringutils v0.27.1 // indirect
	github.com/go-openapi/swag/typeutils v0.27.1 // indirect
	github.com/go-openapi/swag/yamlutils v0.27.1 // indirect
	github.com/godbus/dbus/v5 v5.2.2 // indirect
	github.com/google/gnostic-models v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/huandu/xstrings v1.5.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	github.com/moby/sys/userns v0.1.0 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/opencontainers/cgroups v0.0.6 // indirect
	github.com/opencontainers/runc v1.5.0 // indirect
	github.com/opencontainers/runtime-spec v1.3.0 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/shopspring/decimal v1.4.0 // indirect
	github.com/spf13/cast v1.7.1 // indirect
	github.com/stretchr/objx v0.5.3 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/yusufpapurcu/wmi v1.2.4 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/oauth2 v0.37.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	howett.net/plist v1.0.2-0.20250314012144-ee69052608d9 // indirect
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad // indirect
	k8s.io/kubernetes v1.35.3 // indirect
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2 // indirect
)

// What NFD and Kubernetes require at versions that do not exist, and replace in their own go.mod. Without these
// lines "go list -m all" fails, and with it every tool that reads the whole module graph.
replace (
	k8s.io/api v0.0.0 => k8s.io/api v0.35.3
	k8s.io/apiextensions-apiserver v0.0.0 => k8s.io/apiextensions-apiserver v0.35.3
	k8s.io/apimachinery v0.0.0 => k8s.io/apimachinery v0.35.3
	k8s.io/apiserver v0.0.0 => k8s.io/apiserver v0.35.3
	k8s.io/cli-runtime v0.0.0 => k8s.io/cli-runtime v0.35.3
	k8s.io/client-go v0.0.0 => k8s.io/client-go v0.35.3
	k8s.io/cloud-provider v0.0.0 => k8s.io/cloud-provider v0.35.3
	k8s.io/cluster-bootstrap v0.0.0 => k8s.io/cluster-bootstrap v0.35.3
	k8s.io/code-generator v0.0.0 => k8s.io/code-generator v0.35.3
	k8s.io/component-base v0.0.0 => k8s.io/component-base v0.35.3
	k8s.io/component-helpers v0.0.0 => k8s.io/component-helpers v0.35.3
	k8s.io/controller-manager v0.0.0 => k8s.io/controller-manager v0.35.3
	k8s.io/cri-api v0.0.0 => k8s.io/cri-api v0.35.3
	k8s.io/cri-client v0.0.0 => k8s.io/cri-client v0.35.3
	k8s.io/csi-translation-lib v0.0.0 => k8s.io/csi-translation-lib v0.35.3
	k8s.io/dynamic-resource-allocation v0.0.0 => k8s.io/dynamic-resource-allocation v0.35.3
	k8s.io/endpointslice v0.0.0 => k8s.io/endpointslice v0.35.3
	k8s.io/externaljwt v0.0.0 => k8s.io/externaljwt v0.35.3
	k8s.io/kms v0.0.0 => k8s.io/kms v0.35.3
	k8s.io/kube-aggregator v0.0.0 => k8s.io/kube-aggregator v0.35.3
	k8s.io/kube-controller-manager v0.0.0 => k8s.io/kube-controller-manager v0.35.3
	k8s.io/kube-proxy v0.0.0 => k8s.io/kube-proxy v0.35.3
	k8s.io/kube-scheduler v0.0.0 => k8s.io/kube-scheduler v0.35.3
	k8s.io/kubectl v0.0.0 => k8s.io/kubectl v0.35.3
	k8s.io/kubelet v0.0.0 => k8s.io/kubelet v0.35.3
	k8s.io/metrics v0.0.0 => k8s.io/metrics v0.35.3
	k8s.io/mount-utils v0.0.0 => k8s.io/mount-utils v0.35.3
	k8s.io/pod-security-admission v0.0.0 => k8s.io/pod-security-admission v0.35.3
	k8s.io/sample-apiserver v0.0.0 => k8s.io/sample-apiserver v0.35.4
)
