package deadline

import (
	"context"
	"sync/atomic"
	"time"
)

// Patience is how long a read of InTurn goes on before the others no longer wait for it: at
// least so long, and less than twice that.
const Patience = 300 * time.Millisecond

// InTurn does n reads one after the other. A reader that makes no progress for a while is
// left waiting, and another goes on with the next. It returns when all reads have ended or
// ctx ends, from when on no further read begins. A read that hangs goes on by itself, so that
// what it writes must be safe to read meanwhile.
func InTurn(ctx context.Context, n int, read func(i int)) {
	if n == 0 {
		return
	}
	var begun, ended atomic.Int64 // reads
	done := make(chan struct{})   // closed when all have ended
	reader := func() {
		for ctx.Err() == nil {
			i := int(begun.Add(1)) - 1
			if i >= n {
				return
			}
			read(i)
			if int(ended.Add(1)) == n {
				close(done)
			}
		}
	}
	go reader()
	ticks := time.NewTicker(Patience)
	defer ticks.Stop()
	for before := int64(1); ; {
		select {
		case <-ticks.C:
			if now := begun.Load(); now > before {
				before = now
			} else if int(now) < n {
				before = now + 1
				go reader()
			}
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}
