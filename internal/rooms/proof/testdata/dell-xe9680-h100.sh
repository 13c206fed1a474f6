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
step mlx5_0_host - mlx5_0 host 400 504.1
step 0000-19-00.0_mlx5_0_dmabuf 0000:19:00.0 mlx5_0 dmabuf 400 504.1
step 0000-19-00.0_mlx5_0_peermem 0000:19:00.0 mlx5_0 peermem 400 504.1
step mlx5_3_host - mlx5_3 host 400 504.1
step 0000-3b-00.0_mlx5_3_dmabuf 0000:3b:00.0 mlx5_3 dmabuf 400 504.1
step 0000-3b-00.0_mlx5_3_peermem 0000:3b:00.0 mlx5_3 peermem 400 504.1
step mlx5_4_host - mlx5_4 host 400 504.1
step 0000-4c-00.0_mlx5_4_dmabuf 0000:4c:00.0 mlx5_4 dmabuf 400 504.1
step 0000-4c-00.0_mlx5_4_peermem 0000:4c:00.0 mlx5_4 peermem 400 504.1
step mlx5_5_host - mlx5_5 host 400 504.1
step 0000-5d-00.0_mlx5_5_dmabuf 0000:5d:00.0 mlx5_5 dmabuf 400 504.1
step 0000-5d-00.0_mlx5_5_peermem 0000:5d:00.0 mlx5_5 peermem 400 504.1
step mlx5_6_host - mlx5_6 host 400 504.1
step 0000-9b-00.0_mlx5_6_dmabuf 0000:9b:00.0 mlx5_6 dmabuf 400 504.1
step 0000-9b-00.0_mlx5_6_peermem 0000:9b:00.0 mlx5_6 peermem 400 504.1
step mlx5_9_host - mlx5_9 host 400 504.1
step 0000-bb-00.0_mlx5_9_dmabuf 0000:bb:00.0 mlx5_9 dmabuf 400 504.1
step 0000-bb-00.0_mlx5_9_peermem 0000:bb:00.0 mlx5_9 peermem 400 504.1
step mlx5_10_host - mlx5_10 host 400 504.1
step 0000-cb-00.0_mlx5_10_dmabuf 0000:cb:00.0 mlx5_10 dmabuf 400 504.1
step 0000-cb-00.0_mlx5_10_peermem 0000:cb:00.0 mlx5_10 peermem 400 504.1
step mlx5_11_host - mlx5_11 host 400 504.1
step 0000-db-00.0_mlx5_11_dmabuf 0000:db:00.0 mlx5_11 dmabuf 400 504.1
step 0000-db-00.0_mlx5_11_peermem 0000:db:00.0 mlx5_11 peermem 400 504.1
end
PLAN
of=24

# mlx5_0: host memory on both sides, the baseline
run mlx5_0_host '-d mlx5_0 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:19:00.0, NIC mlx5_0 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-19-00.0_mlx5_0_dmabuf '-d mlx5_0 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:19:00.0 --use_cuda_dmabuf'

# GPU 0000:19:00.0, NIC mlx5_0 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-19-00.0_mlx5_0_peermem '-d mlx5_0 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:19:00.0'

# mlx5_3: host memory on both sides, the baseline
run mlx5_3_host '-d mlx5_3 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:3b:00.0, NIC mlx5_3 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-3b-00.0_mlx5_3_dmabuf '-d mlx5_3 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:3b:00.0 --use_cuda_dmabuf'

# GPU 0000:3b:00.0, NIC mlx5_3 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-3b-00.0_mlx5_3_peermem '-d mlx5_3 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:3b:00.0'

# mlx5_4: host memory on both sides, the baseline
run mlx5_4_host '-d mlx5_4 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:4c:00.0, NIC mlx5_4 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-4c-00.0_mlx5_4_dmabuf '-d mlx5_4 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:4c:00.0 --use_cuda_dmabuf'

# GPU 0000:4c:00.0, NIC mlx5_4 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-4c-00.0_mlx5_4_peermem '-d mlx5_4 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:4c:00.0'

# mlx5_5: host memory on both sides, the baseline
run mlx5_5_host '-d mlx5_5 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:5d:00.0, NIC mlx5_5 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-5d-00.0_mlx5_5_dmabuf '-d mlx5_5 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:5d:00.0 --use_cuda_dmabuf'

# GPU 0000:5d:00.0, NIC mlx5_5 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-5d-00.0_mlx5_5_peermem '-d mlx5_5 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:5d:00.0'

# mlx5_6: host memory on both sides, the baseline
run mlx5_6_host '-d mlx5_6 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:9b:00.0, NIC mlx5_6 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-9b-00.0_mlx5_6_dmabuf '-d mlx5_6 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:9b:00.0 --use_cuda_dmabuf'

# GPU 0000:9b:00.0, NIC mlx5_6 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-9b-00.0_mlx5_6_peermem '-d mlx5_6 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:9b:00.0'

# mlx5_9: host memory on both sides, the baseline
run mlx5_9_host '-d mlx5_9 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:bb:00.0, NIC mlx5_9 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-bb-00.0_mlx5_9_dmabuf '-d mlx5_9 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:bb:00.0 --use_cuda_dmabuf'

# GPU 0000:bb:00.0, NIC mlx5_9 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-bb-00.0_mlx5_9_peermem '-d mlx5_9 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:bb:00.0'

# mlx5_10: host memory on both sides, the baseline
run mlx5_10_host '-d mlx5_10 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:cb:00.0, NIC mlx5_10 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-cb-00.0_mlx5_10_dmabuf '-d mlx5_10 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:cb:00.0 --use_cuda_dmabuf'

# GPU 0000:cb:00.0, NIC mlx5_10 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-cb-00.0_mlx5_10_peermem '-d mlx5_10 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:cb:00.0'

# mlx5_11: host memory on both sides, the baseline
run mlx5_11_host '-d mlx5_11 -i 1 -s 65536 -D 5 -F --report_gbits'

# GPU 0000:db:00.0, NIC mlx5_11 (PIX), dmabuf: GPU memory on both sides; if that fails, on one side
gpu 0000-db-00.0_mlx5_11_dmabuf '-d mlx5_11 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:db:00.0 --use_cuda_dmabuf'

# GPU 0000:db:00.0, NIC mlx5_11 (PIX), peermem: GPU memory on both sides; if that fails, on one side
gpu 0000-db-00.0_mlx5_11_peermem '-d mlx5_11 -i 1 -s 65536 -D 5 -F --report_gbits' '--use_cuda_bus_id=0000:db:00.0'

echo "written to $dir; now: gdr-features proof read $dir"
