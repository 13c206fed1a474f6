#!/bin/sh
# Measures whether GPUs and NICs of this node exchange data directly (GPUDirect RDMA).
# Written by gdr-features proof plan. Usage: sh THIS [DIR]
#
# Each step is a transfer from a client to a server on this node, through one NIC and back, which
# does not leave the node. The script runs ib_write_bw (package perftest), timeout, sleep, mkdir and cat.
# It writes one new folder, DIR (gdr-proof): NAME.s.* of the server, NAME.c.* of the client. Then:
#
#   gdr-features proof read DIR
#
# A transfer takes bandwidth from whoever uses the same GPU or NIC, and some hundred megabytes of
# GPU memory. Run it on a node without jobs. Who uses the GPUs:
#
#   nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name --format=csv
#   rocm-smi --showpids
#
# In a container these show no processes of others: ask for all GPUs of the node.
set -u
LC_ALL=C
export LC_ALL
limit=60 # seconds for a side of a step, which takes much less (-D)
port=18600 # each transfer has one of its own, above this one; perftest's default may be in use
dir=${1:-gdr-proof}
for tool in ib_write_bw timeout sleep mkdir cat; do
	command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 1; }
done
mkdir "$dir" && cd "$dir" || exit 1
server=''
client=''
stop() {
	for pid in $client $server; do kill "$pid" 2>/dev/null; done
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

# start SIDE NAME OPTIONS: starts a side of a step.
start() {
	echo "ib_write_bw $3" >"$2.$1.cmd"
	# shellcheck disable=SC2086 # the options are words
	timeout -k 5 "$limit" ib_write_bw $3 >"$2.$1.out" 2>"$2.$1.err" &
}

# running PID: waits some seconds for the end of a process; false when it has ended.
running() {
	for _ in 1 2 3 4 5; do
		kill -0 "$1" 2>/dev/null || return 1
		sleep 1
	done
}

# transfer NAME OPTIONS SERVER CLIENT: one transfer; false when a side failed.
transfer() {
	port=$((port + 1))
	start s "$1" "$2 -p $port $3"
	server=$!
	ended=''
	for _ in 1 2 3 4 5; do # until the server listens
		sleep 1
		kill -0 "$server" 2>/dev/null || break
		start c "$1" "$2 -p $port $4 127.0.0.1"
		client=$!
		wait "$client"
		ended=$?
		client=''
		case $(cat "$1.c.err") in *"Couldn't connect to"*) ;; *) break ;; esac
	done
	[ -z "$ended" ] || echo "$ended" >"$1.c.rc"
	if running "$server"; then kill "$server" 2>/dev/null; fi
	wait "$server"
	status=$?
	server=''
	echo "$status" >"$1.s.rc"
	[ "$status $ended" = "0 0" ]
}

# run NAME OPTIONS: a transfer from host memory to host memory.
run() {
	step=$((step + 1))
	printf '[%s/%s] %s ... ' "$step" "$of" "$1"
	if transfer "$1" "$2" "" ""; then echo ended; else echo failed; fi
}

# gpu NAME OPTIONS MEMORY: from GPU memory to GPU memory; if that fails, with one side each.
gpu() {
	step=$((step + 1))
	printf '[%s/%s] %s ... ' "$step" "$of" "$1"
	if transfer "$1" "$2" "$3" "$3"; then echo ended; return; fi
	echo failed
	transfer "$1_server" "$2" "$3" ""
	transfer "$1_client" "$2" "" "$3"
}

step=0
timeout 10 ib_write_bw --version >version 2>&1 </dev/null
cat >plan <<'PLAN'
gdr-features proof 1
lacks 0000:53:00.0: rdmap79s0, rdmap80s0, rdmap81s0, rdmap82s0: its link layer is Unspecified, for which no options are known here
lacks 0000:64:00.0: rdmap96s0, rdmap97s0, rdmap98s0, rdmap99s0: its link layer is Unspecified, for which no options are known here
lacks 0000:75:00.0: rdmap113s0, rdmap114s0, rdmap115s0, rdmap116s0: its link layer is Unspecified, for which no options are known here
lacks 0000:86:00.0: rdmap130s0, rdmap131s0, rdmap132s0, rdmap133s0: its link layer is Unspecified, for which no options are known here
lacks 0000:97:00.0: rdmap147s0, rdmap148s0, rdmap149s0, rdmap150s0: its link layer is Unspecified, for which no options are known here
lacks 0000:a8:00.0: rdmap164s0, rdmap165s0, rdmap166s0, rdmap167s0: its link layer is Unspecified, for which no options are known here
lacks 0000:b9:00.0: rdmap181s0, rdmap182s0, rdmap183s0, rdmap184s0: its link layer is Unspecified, for which no options are known here
lacks 0000:ca:00.0: rdmap198s0, rdmap199s0, rdmap200s0, rdmap201s0: its link layer is Unspecified, for which no options are known here
end
PLAN
of=0

# Not measured: 0000:53:00.0: rdmap79s0, rdmap80s0, rdmap81s0, rdmap82s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:64:00.0: rdmap96s0, rdmap97s0, rdmap98s0, rdmap99s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:75:00.0: rdmap113s0, rdmap114s0, rdmap115s0, rdmap116s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:86:00.0: rdmap130s0, rdmap131s0, rdmap132s0, rdmap133s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:97:00.0: rdmap147s0, rdmap148s0, rdmap149s0, rdmap150s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:a8:00.0: rdmap164s0, rdmap165s0, rdmap166s0, rdmap167s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:b9:00.0: rdmap181s0, rdmap182s0, rdmap183s0, rdmap184s0: its link layer is Unspecified, for which no options are known here
# Not measured: 0000:ca:00.0: rdmap198s0, rdmap199s0, rdmap200s0, rdmap201s0: its link layer is Unspecified, for which no options are known here

echo "written to $dir; now: gdr-features proof read $dir"
