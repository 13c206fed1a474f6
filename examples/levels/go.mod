module example.com/levels

go 1.26.0

require gdr-features v0.0.0

require golang.org/x/sys v0.49.0 // indirect

// The module has no published path yet: an importer names the folder it is in.
replace gdr-features => ../..
