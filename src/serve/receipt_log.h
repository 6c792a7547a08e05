// Receipt_log: a request as one line of the log: debug when all went well, info when not, warn when
// its model failed.
#pragma once

#include "base/log.h"
#include "serve/receipt.h"

void receipt_log(const Receipt *r, const Log *log);
