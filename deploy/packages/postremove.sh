#!/bin/sh
# Removes the feature file when nothing is to remain: `dpkg --purge` or `rpm --erase`. Its
# labels go with it. `dpkg --remove` leaves it, as it leaves the configuration.
set -e
case $1 in
purge | 0)
	rm -f /etc/kubernetes/node-feature-discovery/features.d/gdr-features.features
	for dir in /etc/kubernetes/node-feature-discovery/features.d /etc/kubernetes/node-feature-discovery /etc/kubernetes /etc/gdr-features; do
		rmdir --ignore-fail-on-non-empty "$dir" 2>/dev/null || true
	done
	;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
