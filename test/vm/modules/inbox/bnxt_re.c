#include "../vendor/bnxt_re.c"
