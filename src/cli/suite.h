// Suite: one folder of the ONNX conformance suite, a model with inputs and expected outputs.
#pragma once

#include "base/err.h"

typedef enum Verdict { VERDICT_PASSED, VERDICT_REFUSED, VERDICT_FAILED } Verdict;

// Runs every data set of the case in dir. The reason of a refusal or failure is in err_why().
Verdict suite_case(const char *dir);
