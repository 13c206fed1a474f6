package proof

import "slices"

// Codes are the pages that rows name, each once.
func Codes() []string {
	var all []string
	for i := range rows {
		if code := rows[i].code; code != "" && !slices.Contains(all, code) {
			all = append(all, code)
		}
	}
	return all
}
