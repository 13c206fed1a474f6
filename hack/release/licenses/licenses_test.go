package licenses

import (
	"os"
	"strings"
	"testing"
)

// A module needs the text of an allowed license; a NOTICE beside it is none.
func TestJudge(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	// Free as well, but not in our list.
	const zlib = `This software is provided 'as-is', without any express or implied
warranty. In no event will the authors be held liable for any damages
arising from the use of this software.

Permission is granted to anyone to use this software for any purpose,
including commercial applications, and to alter it and redistribute it
freely, subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not
claim that you wrote the original software. If you use this software
in a product, an acknowledgment in the product documentation would be
appreciated but is not required.

2. Altered source versions must be plainly marked as such, and must not be
misrepresented as being the original software.

3. This notice may not be removed or altered from any source distribution.
`
	for name, test := range map[string]struct {
		files []File
		spdx  string
		wrong string // part of the error
	}{
		"allowed":            {[]File{{"LICENSE", apache}}, "Apache-2.0", ""},
		"with a NOTICE":      {[]File{{"LICENSE", apache}, {"NOTICE", []byte("by somebody")}}, "Apache-2.0", ""},
		"none":               {nil, "", "has no license"},
		"only a NOTICE":      {[]File{{"NOTICE.txt", []byte("by somebody")}}, "", "has no license"},
		"unknown text":       {[]File{{"LICENSE", []byte("ask before you use this")}}, "", "is not the text of a known license"},
		"not allowed":        {[]File{{"COPYING", []byte(zlib)}}, "Zlib", "which is not in the list"},
		"one of two":         {[]File{{"LICENSE", apache}, {"third_party/COPYING", []byte(zlib)}}, "Apache-2.0 Zlib", "third_party/COPYING"},
		"a license and more": {[]File{{"LICENSE", append([]byte(strings.Repeat("You must also send us a postcard. ", 400)), apache...)}}, "Apache-2.0", "is not the text of a known license"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Module{Path: "example.com/m", Version: "v1.0.0", Files: test.files}
			err := m.judge()
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("error %v, want %q", err, test.wrong)
			}
			if got := strings.Join(m.SPDX, " "); got != test.spdx {
				t.Errorf("licenses %q, want %q", got, test.spdx)
			}
		})
	}
}

// Equal texts are printed once, under the names of all their files.
func TestText(t *testing.T) {
	text := string(Text([]Module{
		{"example.com/a", "v1.0.0", []string{"MIT"}, []File{{"LICENSE", []byte("free\n")}}},
		{"example.com/b", "v2.0.0", []string{"MIT"}, []File{{"LICENSE", []byte("free")}, {"NOTICE", []byte("by b")}}},
	}))
	for _, want := range []string{
		"\n  example.com/a v1.0.0: MIT\n  example.com/b v2.0.0: MIT\n",
		"=\nexample.com/a v1.0.0: LICENSE\nexample.com/b v2.0.0: LICENSE\n\nfree\n",
		"=\nexample.com/b v2.0.0: NOTICE\n\nby b\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "free") != 1 {
		t.Errorf("a text is there twice:\n%s", text)
	}
}
