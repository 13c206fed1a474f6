#!/bin/sh
# Stops and disables the service, unless the package is being upgraded: the argument of
# Debian's packages is then "upgrade", that of RPM the number of versions that remain.
set -e
case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now gdr-features.service
	else
		rm -f /etc/systemd/system/multi-user.target.wants/gdr-features.service
	fi
	;;
esac
