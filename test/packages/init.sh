#!/bin/sh
# The first process. The kernel's initial file system cannot be replaced by another one for
# a service that gets a view of its own; a mount of the same files can. Starts systemd in it.
mount --bind / /mnt
cd /mnt
mount --move . /
exec chroot . /sbin/init
