// KubeResize: the patch that sets a pod's total CPU and memory requests, for pods/resize.
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

// *out: the body of a strategic merge patch, to be freed; NULL: nothing would change. Amounts are
// divided among the containers as they are now. The QoS class stays: a limit that equals its
// request moves with it, and no request exceeds its limit, or reaches it where that would make the
// pod Guaranteed. A pod with a container that would restart is refused.
MUST_USE Err kube_resize_patch(const json_t *pod, int64_t cores_milli, int64_t bytes, char **out);
