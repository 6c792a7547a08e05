#include "compile/bind.h"
Err bind_conv(Binder *b, const IrLayer *l, Step *s) { return bind_nothing(b, l, s); }
