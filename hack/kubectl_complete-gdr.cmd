@rem kubectl 1.26 and newer runs this on Windows to complete `kubectl gdr`.
@kubectl-gdr.exe __complete %*
