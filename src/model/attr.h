// Attr: typed access to a node's attributes, with defaults. op_check has checked the kinds at load.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/graph.h"

const Attr    *attr_find(const Node *n, const char *name);  // NULL when absent
bool           attr_has(const Node *n, const char *name);
int64_t        attr_int(const Node *n, const char *name, int64_t otherwise);
float          attr_float(const Node *n, const char *name, float otherwise);
bool           attr_is(const Node *n, const char *name, const char *text, bool otherwise);
const char    *attr_str(const Node *n, const char *name, const char *otherwise);  // terminated
const int64_t *attr_ints(const Node *n, const char *name, uint32_t *count);  // NULL, 0 when absent
const float   *attr_floats(const Node *n, const char *name, uint32_t *count);
const Str     *attr_strings(const Node *n, const char *name, uint32_t *count);

// The index of a string attribute in names[count], 0 when absent; fails when it is none of them.
MUST_USE Err attr_enum(const Node *n, const char *name, const char *const *names, int count,
                       int *index);

const Tensor *attr_tensor(const Node *n, const char *name);  // NULL when absent
Graph        *attr_graph(const Node *n, const char *name);   // NULL when absent
