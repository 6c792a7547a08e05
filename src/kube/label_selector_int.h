// LabelSelector internals: checks that its readers share.
#pragma once

#include "kube/label_selector.h"

bool         label_number(const char *text, int64_t *out);  // an integer in decimal
MUST_USE Err label_rule_check(LabelRule *r);                // numbers of values; sets the bound
