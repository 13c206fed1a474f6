#!/bin/sh
# Makes the user and the folder of the service. A service that runs is restarted with the
# new version; none is enabled.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers gdr-features.conf
	systemd-tmpfiles --create gdr-features.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart gdr-features.service
fi
