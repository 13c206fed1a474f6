package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// kinds are Kubernetes' own types of what the chart renders.
var kinds = map[string]func() any{
	"ClusterRole":                      func() any { return new(rbacv1.ClusterRole) },
	"ConfigMap":                        func() any { return new(corev1.ConfigMap) },
	"DaemonSet":                        func() any { return new(appsv1.DaemonSet) },
	"NetworkPolicy":                    func() any { return new(networkingv1.NetworkPolicy) },
	"Pod":                              func() any { return new(corev1.Pod) },
	"Role":                             func() any { return new(rbacv1.Role) },
	"RoleBinding":                      func() any { return new(rbacv1.RoleBinding) },
	"Service":                          func() any { return new(corev1.Service) },
	"ServiceAccount":                   func() any { return new(corev1.ServiceAccount) },
	"ValidatingAdmissionPolicy":        func() any { return new(admissionv1.ValidatingAdmissionPolicy) },
	"ValidatingAdmissionPolicyBinding": func() any { return new(admissionv1.ValidatingAdmissionPolicyBinding) },
}

// custom are kinds of the Prometheus Operator, which test/e2e gives to an API server.
var custom = []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"}

// objects returns what a manifest has, decoded strictly: no field twice, none that the type
// does not have.
func objects(t *testing.T, what, manifest string) (all []any) {
	t.Helper()
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(custom, head.Kind) {
			if err := yaml.UnmarshalStrict([]byte(text), &values{}); err != nil {
				t.Errorf("%s: %s: %v", what, head.Kind, err)
			}
			continue
		}
		create, ok := kinds[head.Kind]
		if !ok {
			t.Fatalf("%s: kind %q\n%s", what, head.Kind, text)
		}
		into := create()
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Errorf("%s: %s: %v", what, head.Kind, err)
		}
		all = append(all, into)
	}
	return all
}

// Any two files of ci go together: every object is one of Kubernetes' types, and the Pods of
// the agent and of the test make sense and run alike.
func TestPairs(t *testing.T) {
	all := switches(t)
	names := slices.Sorted(maps.Keys(all))
	for i, a := range names {
		for _, b := range names[i:] {
			what := a + " and " + b
			if what == "topology-file and topology-files" { // one excludes the other
				continue
			}
			var set *appsv1.DaemonSet
			var test *corev1.Pod
			for _, o := range objects(t, what, manifest(t, merge(all[a], all[b]))) {
				switch o := o.(type) {
				case *appsv1.DaemonSet:
					set = o
				case *corev1.Pod:
					test = o
				}
			}
			if set == nil || test == nil {
				t.Fatalf("%s: no DaemonSet or no test", what)
			}
			judgePod(t, what, &set.Spec.Template.Spec)
			alike(t, what, set, test)
		}
	}
}

// judgePod says what the API server would refuse in a Pod, though it is of the right type.
func judgePod(t *testing.T, what string, pod *corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	var flags, variables, volumes, paths []string
	for _, arg := range c.Args {
		name, _, _ := strings.Cut(arg, "=")
		flags = append(flags, name)
	}
	for _, v := range c.Env {
		variables = append(variables, v.Name)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range c.VolumeMounts {
		paths = append(paths, m.MountPath)
		if !slices.Contains(volumes, m.Name) {
			t.Errorf("%s: no volume %s", what, m.Name)
		}
	}
	for _, list := range [][]string{flags, variables, volumes, paths} {
		slices.Sort(list)
		if len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%s: twice in %q", what, list)
		}
	}
	s := c.SecurityContext
	if s.Privileged != nil && *s.Privileged && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		t.Errorf("%s: privileged without privilege escalation", what)
	}
	if root := *pod.SecurityContext.RunAsUser == 0; root == *pod.SecurityContext.RunAsNonRoot {
		t.Errorf("%s: user %d, runAsNonRoot %v", what, *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsNonRoot)
	}
}

// alike says how the Pod of `helm test` differs from the agent's, apart from --once, and what
// makes a Pod of it that serves.
func alike(t *testing.T, what string, set *appsv1.DaemonSet, test *corev1.Pod) {
	t.Helper()
	agent := set.Spec.Template.Spec.DeepCopy()
	c := &agent.Containers[0]
	c.Args = slices.Insert(c.Args, 1, "--once")
	c.Ports, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil
	agent.RestartPolicy = corev1.RestartPolicyNever
	want, err := yaml.Marshal(agent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(test.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s: the test runs as\n%s\nnot as\n%s", what, got, want)
	}
	for name, value := range set.Spec.Selector.MatchLabels {
		if test.Labels[name] == value {
			t.Errorf("%s: the DaemonSet would adopt the test", what)
		}
	}
}
