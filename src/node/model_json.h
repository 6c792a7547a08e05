// ModelJson: a NodeModel as JSON and back, so that the records of a run carry what was known of its
// networks. Times and bytes are rounded to whole ones.
#pragma once

#include "base/json.h"
#include "node/model.h"

json_t      *model_to_json(const NodeModel *m);  // NULL without memory; the model has a demand
MUST_USE Err model_from_json(const json_t *j, Arena *a, NodeModel *out);
