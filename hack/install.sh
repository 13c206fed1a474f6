#!/bin/sh
# Installs programs, the manual pages and shell completion. COMPLETES is the gdr-features
# that completion is asked of, when those in PROGRAMS (bin) are for another machine.
# usage: install.sh DIRECTORY [PROGRAMS [COMPLETES]]
set -eu
cd "$(dirname "$0")/.."
to=$1 programs=${2:-bin}
completes=${3:-$programs/gdr-features}
umask 022

install -d "$to/bin" "$to/share/man/man1" "$to/share/bash-completion/completions" \
	"$to/share/zsh/site-functions" "$to/share/fish/vendor_completions.d"
install -m 755 "$programs/gdr-features" "$programs/gdr-features-agent" "$programs/kubectl-gdr" hack/kubectl_complete-gdr "$to/bin/"
install -m 644 man/*.1 "$to/share/man/man1/"
ln -sf gdr-features-nodes.1 "$to/share/man/man1/kubectl-gdr.1"
ln -sf gdr-features-run.1 "$to/share/man/man1/gdr-features-agent.1"
"$completes" completion bash >"$to/share/bash-completion/completions/gdr-features"
"$completes" completion zsh >"$to/share/zsh/site-functions/_gdr-features"
"$completes" completion fish >"$to/share/fish/vendor_completions.d/gdr-features.fish"
