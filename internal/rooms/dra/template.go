package dra

// Template is a ResourceClaimTemplate of resource.k8s.io/v1: the fields that a claim of pairs
// needs (k8s.io/api, resource/v1, types.go). A request is for one device unless it says
// otherwise.
type Template struct {
	APIVersion string   `json:"apiVersion" yaml:"apiVersion"`
	Kind       string   `json:"kind"       yaml:"kind"`
	Metadata   Metadata `json:"metadata"   yaml:"metadata"`
	Spec       struct {
		Spec struct {
			Devices Devices `json:"devices" yaml:"devices"`
		} `json:"spec" yaml:"spec"`
	} `json:"spec" yaml:"spec"`
}

// Metadata are the name and annotations of an object.
type Metadata struct {
	Name        string            `json:"name"                  yaml:"name"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// Devices are what a claim asks for.
type Devices struct {
	Requests    []Request    `json:"requests"              yaml:"requests"`
	Constraints []Constraint `json:"constraints,omitempty" yaml:"constraints,omitempty"`
}

// Request asks for one device of a class that every selector accepts.
type Request struct {
	Name    string `json:"name"    yaml:"name"`
	Exactly struct {
		Class     string     `json:"deviceClassName"     yaml:"deviceClassName"`
		Selectors []Selector `json:"selectors,omitempty" yaml:"selectors,omitempty"`
		Derived   []Derived  `json:"derivedAttributes,omitempty" yaml:"derivedAttributes,omitempty"`
	} `json:"exactly" yaml:"exactly"`
}

// Selector is a condition on a device.
type Selector struct {
	CEL struct {
		Expression string `json:"expression" yaml:"expression"`
	} `json:"cel" yaml:"cel"`
}

// Derived is an attribute that the scheduler computes for each device that the selectors accept.
type Derived struct {
	Name       string `json:"name"       yaml:"name"`
	Expression string `json:"expression" yaml:"expression"`
}

// Constraint demands that the devices of some requests have the same value of an attribute.
type Constraint struct {
	Requests  []string `json:"requests"       yaml:"requests,flow"`
	Attribute string   `json:"matchAttribute" yaml:"matchAttribute"`
}

// request adds a request for one device, and returns it. Empty conditions are left out.
func (d *Devices) request(name, class string, conditions ...string) *Request {
	r := Request{Name: name}
	r.Exactly.Class = class
	for _, condition := range conditions {
		if condition != "" {
			var s Selector
			s.CEL.Expression = condition
			r.Exactly.Selectors = append(r.Exactly.Selectors, s)
		}
	}
	d.Requests = append(d.Requests, r)
	return &d.Requests[len(d.Requests)-1]
}

// derive gives the devices of a request the attribute that the claim derives.
func (r *Request) derive(expression string) {
	r.Exactly.Derived = append(r.Exactly.Derived, Derived{Name: derivedName, Expression: expression})
}
