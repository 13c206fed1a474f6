#!/bin/bash
# What happens on the machine: the package is installed, used, upgraded, removed and purged.
# Ends with PASSED.
set -Eeuo pipefail
trap 'echo "FAILED in line $LINENO: $BASH_COMMAND"; journalctl --no-pager -q -n 30 -u gdr-features' ERR
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
features=/etc/kubernetes/node-feature-discovery/features.d/gdr-features.features
exec 2>&1

step() { echo "--- $*"; }

written() { # written AFTER: waits for a feature file that is newer than the file AFTER
	for _ in $(seq 1200); do
		[ "$features" -nt "$1" ] && return
		sleep 0.1
	done
	return 1
}

step "install: everything works, and nothing runs yet"
dpkg -i /test/gdr-features.deb
[ "$(gdr-features version | cut -d' ' -f2)" = v1.0.0 ]
status=0
gdr-features check >/tmp/check || status=$?
[ "$status" = 2 ] && grep -q NoGPU /tmp/check
man gdr-features-check | grep -q 'gdr-features check'
[ "$(gdr-features-agent version | cut -d' ' -f2)" = v1.0.0 ]
man gdr-features-agent | grep -q 'gdr-features run'
man kubectl-gdr | grep -q 'kubectl gdr'
[ "$(systemctl is-enabled gdr-features || :)" = disabled ]
[ "$(systemctl is-active gdr-features || :)" = inactive ]
systemd-analyze verify gdr-features.service

step "the service writes the feature file of an example machine"
sed -i 's|^listen:.*|&\nroot: /test/machine|' /etc/gdr-features/config.yaml
touch /tmp/start
systemctl enable --now gdr-features
written /tmp/start
grep -q '^feature.node.kubernetes.io/gdr.level=' "$features"
[ "$(stat -c '%U %a' "$features")" = 'gdr-features 644' ]
[ "$(stat -c '%U:%G %a' "${features%/*}")" = 'root:gdr-features 775' ]

step "it has no rights, and sees what it needs"
pid=$(systemctl show -P MainPID gdr-features)
for want in 'CapPrm:	0000000000000000' 'CapBnd:	0000000000000000' 'NoNewPrivs:	1' 'Seccomp:	2'; do
	grep -qF "$want" "/proc/$pid/status"
done
inside() { nsenter --mount --target "$pid" "$@"; }
[ "$(inside grep -c ' ib_\| nf_\| sys' /proc/kallsyms)" -gt 0 ]
inside test -r /sys/bus/pci/devices
inside test -r /usr/lib/modules/config
if inside touch /etc/gdr-features/test || inside touch /var/lib/test; then false; fi
if (exec 3<>/dev/tcp/127.0.0.1/9400) 2>/dev/null; then false; fi
systemd-analyze security --no-pager gdr-features.service | tail -1
systemd-analyze security --no-pager --threshold=12 gdr-features.service >/dev/null

step "metrics, after what config.yaml says"
sed -n 's/^#   //p' /etc/gdr-features/config.yaml >/tmp/metrics.conf
grep -q '^\[Service\]$' /tmp/metrics.conf
mkdir -p /etc/systemd/system/gdr-features.service.d
cp /tmp/metrics.conf /etc/systemd/system/gdr-features.service.d/
sed -i 's|^listen:.*|listen: ":9400"|' /etc/gdr-features/config.yaml
systemctl daemon-reload
systemctl restart gdr-features
for _ in $(seq 600); do
	exec 3<>/dev/tcp/127.0.0.1/9400 && break || sleep 0.1
done
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
grep -q '^gdr_' <&3
exec 3<&-
rm -r /etc/systemd/system/gdr-features.service.d
sed -i 's|^listen:.*|listen: ""|' /etc/gdr-features/config.yaml
systemctl daemon-reload
systemctl restart gdr-features

step "upgrade: the service goes on with the new program and the same configuration"
pid=$(systemctl show -P MainPID gdr-features)
dpkg -i /test/gdr-features.deb
grep -q '^root: /test/machine' /etc/gdr-features/config.yaml
[ "$(systemctl is-active gdr-features)" = active ]
[ "$(systemctl is-enabled gdr-features)" = enabled ]
[ "$(systemctl show -P MainPID gdr-features)" != "$pid" ]

step "remove: configuration and labels stay"
dpkg --remove gdr-features
[ ! -e /usr/bin/gdr-features ] && [ ! -e /usr/lib/systemd/system/gdr-features.service ]
[ "$(systemctl is-active gdr-features || :)" = inactive ]
[ -e /etc/gdr-features/config.yaml ] && [ -e "$features" ]

step "purge: nothing is left but the user"
dpkg --purge gdr-features
left=$(find / -xdev -path /test -prune -o -path /proc -prune -o -path /sys -prune -o -path /var/log -prune -o -path /var/cache/man -prune -o -path /run -prune -o -iname '*gdr-features*' -print)
[ -z "$left" ] || { echo "left: $left"; false; }
[ ! -e /etc/kubernetes ]
echo PASSED
