package main

// shortLog is the log of a job: what runOn puts in.
const shortLog = "h100-1:12:40 [0] NCCL INFO Channel 00/0 : 0[1b000] -> 8[1b000] [send] via NET/IB/0\n"
