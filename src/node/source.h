// Source: a network as it was given: a file, read once and known by its hash, or one of the zoo.
#pragma once

#include <sys/types.h>

#include "base/hash.h"
#include "base/clock.h"
#include "model/model.h"

typedef struct SourceStamp {  // of a file; what changes with it, as far as a folder tells
    dev_t    device;
    ino_t    inode;
    TimeNs   modified;
    uint64_t bytes;
    uint64_t around;  // of other files in its folder, where weights may be
} SourceStamp;

typedef struct SourceOptions {
    const char *name;       // in errors; NULL: what it is
    uint64_t    max_bytes;  // of weights; 0: no limit
} SourceOptions;

typedef struct Source {
    Model       model;                // its constants computed, and folded
    char        sha256[SHA256_TEXT];  // of the file; "" for the zoo
    SourceStamp stamp;                // zeroed for the zoo
    uint64_t    weight_bytes;
    bool        open;  // a dimension of its inputs is open: it can be compiled more than once
} Source;

// what: "zoo:NAME", the name of one of the zoo, or an ONNX file. A file that changes meanwhile is
// refused. Paths are not in the reason when there is a name.
MUST_USE Err source_read(Source *s, const char *what, const SourceOptions *o);
void         source_finish(Source *s);  // accepts a zeroed Source

bool source_is_zoo(const char *what);
// ERR_IO when there is no such file; zeroed for the zoo.
MUST_USE Err source_stamp(const char *what, SourceStamp *out);
bool         source_same_stamp(const SourceStamp *a, const SourceStamp *b);
