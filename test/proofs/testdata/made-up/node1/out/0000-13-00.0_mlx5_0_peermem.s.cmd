ib_write_bw -d mlx5_0 -i 1 -s 65536 -D 5 -F --report_gbits -p 18603 --use_cuda_bus_id=0000:13:00.0
