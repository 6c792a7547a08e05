// Infer: one inference as clients ask for it and get it, whichever protocol it came by.
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

enum { INFER_TENSORS = 256 };  // inputs, or outputs, of one request

typedef struct InferTensor {
    Str    name;
    Tensor t;  // DT_STR for BYTES: Str elements
} InferTensor;

typedef struct InferRequestedOutput {  // an output
    Str  name;
    bool binary, has_binary;  // has_binary: whether the request says so for this output
} InferRequestedOutput;

typedef struct InferRequest {  // everything lives in the body or the arena it was decoded with
    Str     model, version;    // gRPC; REST has them in the path
    Str     id;
    int64_t timeout_us;  // parameters.timeout; -1: not given
    int64_t priority;    // parameters.priority, 1 is highest; 0: the model's
    bool    timing;      // parameters.timing: say how it went
    bool    binary;      // outputs are binary unless they say otherwise
    bool    raw_body;  // the body is the only input's numbers: inputs[0] has neither name nor type
    bool    raw;       // gRPC: contents came raw, and go raw
    InferTensor          *inputs;
    InferRequestedOutput *requested;  // none: all
    uint32_t              n_inputs, n_requested;
} InferRequest;

typedef struct TensorSpec {  // an input or output that a model declares
    const char *name;
    Tensor      type;  // DIM_UNKNOWN where it is open; no data
    bool        optional;
} TensorSpec;

typedef struct ModelSignature {  // what a model takes and gives
    const TensorSpec *inputs, *outputs;
    uint32_t          n_inputs, n_outputs;
} ModelSignature;

typedef struct InferParameter {  // a response parameter
    const char *key;
    const char *text;  // NULL: number
    double      number;
} InferParameter;

typedef struct InferResponse {
    const char           *model, *version;
    Str                   id;
    const TensorSpec     *specs;    // [n] of the outputs that are sent
    const Tensor         *tensors;  // [n]
    const bool           *binary;   // [n]
    uint32_t              n;
    const InferParameter *parameters;
    uint32_t              n_parameters;
} InferResponse;

// The protocol's word for a type: "FP32"; NULL when it has none. infer_dtype: DT_NONE when unknown.
const char *infer_type_name(DType t);
DType       infer_dtype(Str name);

enum { INFER_PRINTABLE = 80 };
// A client's name for something, fit for a sentence: cut when it is long, without control
// characters and broken UTF-8. Returns out.
const char *infer_printable(Str name, char out[INFER_PRINTABLE]);

// Puts a request's inputs into the order of the model's, names, types, ranks and sizes checked.
// ERR_INVALID with a sentence for the client. inputs[signature->n_inputs].
MUST_USE Err infer_bind_inputs(const ModelSignature *signature, const InferRequest *r, Arena *a,
                               Tensor *inputs);
// Which outputs to send and how: index into signature->outputs and binary, both [at most
// n_outputs].
MUST_USE Err infer_select_outputs(const ModelSignature *signature, const InferRequest *r,
                                  uint32_t *index, bool *binary, uint32_t *n);

// REST. header: bytes of JSON at the front of the body, SIZE_MAX: all of it. Numbers that are
// binary and aligned stay in the body. ERR_PARSE, ERR_INVALID: 400. ERR_LIMIT: 413.
MUST_USE Err infer_json_decode(unsigned char *body, size_t len, size_t header, Arena *a,
                               InferRequest *out);
// pieces[EXCHANGE_PIECES]: the JSON and the binary outputs, in memory of a or the tensors'.
// *header: bytes of JSON when something binary follows; SIZE_MAX otherwise.
MUST_USE Err infer_json_encode(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                               uint32_t *n_pieces, size_t *header);

// gRPC: a ModelInferRequest and a ModelInferResponse, without the frame around the message.
MUST_USE Err infer_proto_decode(const unsigned char *message, size_t len, Arena *a,
                                InferRequest *out);
MUST_USE Err infer_proto_encode(const InferResponse *r, bool raw, size_t most, Arena *a,
                                struct iovec *pieces, uint32_t *n_pieces);

// Raw: a tensor's numbers as they are in memory, little-endian, as the binary extension sends them.

// t has type and shape, a tensor_measure that holds; its data becomes the bytes themselves where
// they are aligned, a copy in a where they are not. ERR_INVALID says what is wrong with them.
MUST_USE Err infer_read_binary(Tensor *t, unsigned char *bytes, size_t len, Arena *a);
