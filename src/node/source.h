// Source: a model as given: an ONNX file, read once and identified by its SHA-256, or a zoo
// network.
#pragma once

#include <sys/types.h>

#include "base/hash.h"
#include "base/clock.h"
#include "compile/packed_weights.h"
#include "model/model.h"

typedef struct SourceStamp {  // identity of a file, to detect changes
    dev_t    device;
    ino_t    inode;
    TimeNs   modified;
    uint64_t bytes;
    uint64_t around;  // of the other files in its folder (external weights)
} SourceStamp;

typedef struct SourceOptions {
    const char *name;       // in errors; NULL: the path or zoo name
    uint64_t    max_bytes;  // of weights; 0: no limit
    const char *root;       // folder in which links to external data are followed; NULL: none
} SourceOptions;

typedef struct Source {
    Model          model;                // constants folded
    char           sha256[SHA256_TEXT];  // of the file; "" for the zoo
    SourceStamp    stamp;                // zeroed for the zoo
    uint64_t       weight_bytes;
    bool           open;    // an input dimension is open: it can be compiled for several shapes
    PackedWeights *packed;  // of an open one, shared by all it is compiled for; else NULL
} Source;

// what: "zoo:NAME", a zoo network's name, or an ONNX file. A file that changes while it is read is
// an error. With a name, errors do not contain paths.
MUST_USE Err source_read(Source *s, const char *what, const SourceOptions *o);
void         source_finish(Source *s);  // accepts a zeroed Source

bool source_is_zoo(const char *what);
// ERR_IO when there is no such file; zeroed for the zoo.
MUST_USE Err source_stamp(const char *what, SourceStamp *out);
bool         source_same_stamp(const SourceStamp *a, const SourceStamp *b);
