#!/bin/sh
# Installs what `make build` has built, the manual pages and shell completion.
# usage: install.sh DIRECTORY
set -eu
cd "$(dirname "$0")/.."
to=$1
umask 022

install -d "$to/bin" "$to/share/man/man1" "$to/share/bash-completion/completions" \
	"$to/share/zsh/site-functions" "$to/share/fish/vendor_completions.d"
install -m 755 bin/gdr-features bin/gdr-features-agent bin/kubectl-gdr hack/kubectl_complete-gdr "$to/bin/"
install -m 644 man/*.1 "$to/share/man/man1/"
ln -sf gdr-features-nodes.1 "$to/share/man/man1/kubectl-gdr.1"
bin/gdr-features completion bash >"$to/share/bash-completion/completions/gdr-features"
bin/gdr-features completion zsh >"$to/share/zsh/site-functions/_gdr-features"
bin/gdr-features completion fish >"$to/share/fish/vendor_completions.d/gdr-features.fish"
