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
step ionic_0_host - ionic_0 host 400 504.1
step 0000-05-00.0_ionic_0_dmabuf 0000:05:00.0 ionic_0 dmabuf 400 504.1
step 0000-05-00.0_ionic_0_peermem 0000:05:00.0 ionic_0 peermem 400 504.1
step ionic_1_host - ionic_1 host 400 504.1
step 0000-2b-00.0_ionic_1_dmabuf 0000:2b:00.0 ionic_1 dmabuf 400 504.1
step 0000-2b-00.0_ionic_1_peermem 0000:2b:00.0 ionic_1 peermem 400 504.1
step ionic_2_host - ionic_2 host 400 504.1
step 0000-5b-00.0_ionic_2_dmabuf 0000:5b:00.0 ionic_2 dmabuf 400 504.1
step 0000-5b-00.0_ionic_2_peermem 0000:5b:00.0 ionic_2 peermem 400 504.1
step ionic_3_host - ionic_3 host 400 504.1
step 0000-65-00.0_ionic_3_dmabuf 0000:65:00.0 ionic_3 dmabuf 400 504.1
step 0000-65-00.0_ionic_3_peermem 0000:65:00.0 ionic_3 peermem 400 504.1
step ionic_4_host - ionic_4 host 400 504.1
step 0000-7d-00.0_ionic_4_dmabuf 0000:7d:00.0 ionic_4 dmabuf 400 504.1
step 0000-7d-00.0_ionic_4_peermem 0000:7d:00.0 ionic_4 peermem 400 504.1
step ionic_5_host - ionic_5 host 400 504.1
step 0000-a5-00.0_ionic_5_dmabuf 0000:a5:00.0 ionic_5 dmabuf 400 504.1
step 0000-a5-00.0_ionic_5_peermem 0000:a5:00.0 ionic_5 peermem 400 504.1
step ionic_6_host - ionic_6 host 400 504.1
step 0000-d5-00.0_ionic_6_dmabuf 0000:d5:00.0 ionic_6 dmabuf 400 504.1
step 0000-d5-00.0_ionic_6_peermem 0000:d5:00.0 ionic_6 peermem 400 504.1
step ionic_7_host - ionic_7 host 400 504.1
step 0000-e7-00.0_ionic_7_dmabuf 0000:e7:00.0 ionic_7 dmabuf 400 504.1
step 0000-e7-00.0_ionic_7_peermem 0000:e7:00.0 ionic_7 peermem 400 504.1
end
PLAN
of=24

# ionic_0: host memory on both sides, the baseline
run ionic_0_host '-d ionic_0 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:05:00.0, NIC ionic_0 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-05-00.0_ionic_0_dmabuf '-d ionic_0 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=0 --use_rocm_dmabuf'

# GPU 0000:05:00.0, NIC ionic_0 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-05-00.0_ionic_0_peermem '-d ionic_0 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=0'

# ionic_1: host memory on both sides, the baseline
run ionic_1_host '-d ionic_1 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:2b:00.0, NIC ionic_1 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-2b-00.0_ionic_1_dmabuf '-d ionic_1 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=1 --use_rocm_dmabuf'

# GPU 0000:2b:00.0, NIC ionic_1 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-2b-00.0_ionic_1_peermem '-d ionic_1 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=1'

# ionic_2: host memory on both sides, the baseline
run ionic_2_host '-d ionic_2 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:5b:00.0, NIC ionic_2 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-5b-00.0_ionic_2_dmabuf '-d ionic_2 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=2 --use_rocm_dmabuf'

# GPU 0000:5b:00.0, NIC ionic_2 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-5b-00.0_ionic_2_peermem '-d ionic_2 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=2'

# ionic_3: host memory on both sides, the baseline
run ionic_3_host '-d ionic_3 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:65:00.0, NIC ionic_3 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-65-00.0_ionic_3_dmabuf '-d ionic_3 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=3 --use_rocm_dmabuf'

# GPU 0000:65:00.0, NIC ionic_3 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-65-00.0_ionic_3_peermem '-d ionic_3 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=3'

# ionic_4: host memory on both sides, the baseline
run ionic_4_host '-d ionic_4 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:7d:00.0, NIC ionic_4 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-7d-00.0_ionic_4_dmabuf '-d ionic_4 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=4 --use_rocm_dmabuf'

# GPU 0000:7d:00.0, NIC ionic_4 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-7d-00.0_ionic_4_peermem '-d ionic_4 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=4'

# ionic_5: host memory on both sides, the baseline
run ionic_5_host '-d ionic_5 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:a5:00.0, NIC ionic_5 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-a5-00.0_ionic_5_dmabuf '-d ionic_5 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=5 --use_rocm_dmabuf'

# GPU 0000:a5:00.0, NIC ionic_5 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-a5-00.0_ionic_5_peermem '-d ionic_5 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=5'

# ionic_6: host memory on both sides, the baseline
run ionic_6_host '-d ionic_6 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:d5:00.0, NIC ionic_6 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-d5-00.0_ionic_6_dmabuf '-d ionic_6 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=6 --use_rocm_dmabuf'

# GPU 0000:d5:00.0, NIC ionic_6 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-d5-00.0_ionic_6_peermem '-d ionic_6 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=6'

# ionic_7: host memory on both sides, the baseline
run ionic_7_host '-d ionic_7 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:e7:00.0, NIC ionic_7 (PXB), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-e7-00.0_ionic_7_dmabuf '-d ionic_7 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=7 --use_rocm_dmabuf'

# GPU 0000:e7:00.0, NIC ionic_7 (PXB), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-e7-00.0_ionic_7_peermem '-d ionic_7 -i 1 -x 3 -s 65536 -D 5 -F --report_gbits' '--use_rocm=7'

echo "written to $dir; now: gdr-features proof read $dir"
