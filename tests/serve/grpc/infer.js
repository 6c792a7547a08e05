// ModelInfer: raw and typed, every type, the same numbers as `cotenant run`, and what it refuses.
'use strict';
const path = require('path');
const { assert, grpc, connect, call, ask, fails, run, floats, runAll } = require('./client');
const { status } = grpc;
const model = (name) => path.join(process.env.DIR, `${name}.onnx`);

const typed = {
    BOOL: ['bool_contents', [true, false, true, false, false, true]],
    INT8: ['int_contents', [-128, 127, -1, 0, 5, 9]],
    INT16: ['int_contents', [-32768, 32767, -1, 0, 5, 9]],
    INT32: ['int_contents', [-2147483648, 2147483647, -1, 0, 5, 9]],
    INT64: ['int64_contents', ['-9223372036854775808', '9223372036854775807', '-1', '0', '5', '9']],
    UINT8: ['uint_contents', [0, 255, 128, 7, 8, 9]],
    UINT16: ['uint_contents', [0, 65535, 128, 7, 8, 9]],
    UINT32: ['uint_contents', [0, 4294967295, 128, 7, 8, 9]],
    UINT64: ['uint64_contents', ['0', '18446744073709551615', '128', '7', '8', '9']],
    FP32: ['fp32_contents', [0, -1.5, 3.4028234663852886e38, 1e-45, Infinity, 9]],
    FP64: ['fp64_contents', [0, -1.5, 1.7e308, 5e-324, -Infinity, 9]],
    BYTES: ['bytes_contents', ['', 'a', 'bc', '\0', '\xff\xfe', 'long '.repeat(50)].map((s) => Buffer.from(s, 'latin1'))],
};
const raw = {
    BOOL: Buffer.from([1, 0, 1, 0, 0, 1]),
    INT8: Buffer.from(Int8Array.from(typed.INT8[1]).buffer),
    INT16: Buffer.from(Int16Array.from(typed.INT16[1]).buffer),
    INT32: Buffer.from(Int32Array.from(typed.INT32[1]).buffer),
    INT64: Buffer.from(BigInt64Array.from(typed.INT64[1].map(BigInt)).buffer),
    UINT8: Buffer.from(typed.UINT8[1]),
    UINT16: Buffer.from(Uint16Array.from(typed.UINT16[1]).buffer),
    UINT32: Buffer.from(Uint32Array.from(typed.UINT32[1]).buffer),
    UINT64: Buffer.from(BigUint64Array.from(typed.UINT64[1].map(BigInt)).buffer),
    FP16: Buffer.from(Uint16Array.from([0, 0x3c00, 0xbc00, 0x7c00, 1, 0x7bff]).buffer),
    FP32: floats(typed.FP32[1]),
    FP64: Buffer.from(Float64Array.from(typed.FP64[1]).buffer),
    BYTES: Buffer.concat(typed.BYTES[1].flatMap((b) => [Buffer.from(Uint32Array.of(b.length).buffer), b])),
};
const all = Object.keys(raw);
const echo = (names) => names.map((t) => ({ name: `in_${t}`, datatype: t, shape: [2, 3] }));
const rows = (shape, numbers, more = {}) => ({ model_name: 'rows', ...more,
    inputs: [{ name: 'x', datatype: 'FP32', shape, contents: { fp32_contents: numbers } }] });
const input = (change) => ({ model_name: 'rows', inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4],
    contents: { fp32_contents: [1, 2, 3, 4] }, ...change }] });
const refused = (words, request) => fails(status.INVALID_ARGUMENT, words, ask('ModelInfer', request));

runAll({
    'raw there and back, every type': async () => {
        const answer = await ask('ModelInfer', { model_name: 'echo', id: 'r-1', inputs: echo(all).reverse(),
            raw_input_contents: all.map((t) => raw[t]).reverse() });
        assert.strictEqual(answer.model_name, 'echo');
        assert.strictEqual(answer.model_version, '1');
        assert.strictEqual(answer.id, 'r-1');
        assert.deepStrictEqual(answer.outputs.map((o) => o.name), all.map((t) => `out_${t}`).sort((a, b) =>
            answer.outputs.findIndex((o) => o.name === a) - answer.outputs.findIndex((o) => o.name === b)));
        answer.outputs.forEach((o, i) => {
            assert.strictEqual(o.name, `out_${o.datatype}`);
            assert.deepStrictEqual(o.shape, ['2', '3']);
            assert.deepStrictEqual(answer.raw_output_contents[i], raw[o.datatype], o.datatype);
        });
    },
    'typed there and back': async () => {
        const names = Object.keys(typed);
        const inputs = echo(names).map((t) => ({ ...t, contents: { [typed[t.datatype][0]]: typed[t.datatype][1] } }));
        inputs.push({ name: 'in_FP16', datatype: 'FP16', shape: [2, 3] });
        await refused(/FP16/, { model_name: 'echo', inputs });
        // Its FP16 input goes raw only, so that the others are sent raw and asked back typed by another model.
        const answer = await ask('ModelInfer', rows([1, 4], [1, 2, 3, 4]));
        assert.deepStrictEqual(answer.raw_output_contents, []);
        assert.deepStrictEqual(answer.outputs[0].contents.fp32_contents.length, 3);
    },
    'every type typed': async () => {
        for (const t of Object.keys(typed)) {
            const answer = await ask('ModelInfer', { model_name: `echo_${t}`,
                inputs: [{ name: 'in', datatype: t, shape: [2, 3], contents: { [typed[t][0]]: typed[t][1] } }] });
            const [o] = answer.outputs;
            assert.strictEqual(o.datatype, t);
            assert.deepStrictEqual(answer.raw_output_contents, []);
            assert.deepStrictEqual([...o.contents[typed[t][0]]], typed[t][0] === 'fp32_contents'
                ? [...Float32Array.from(typed[t][1])] : typed[t][1], t);
        }
    },
    'the same numbers as cotenant run, batch by batch': async () => {
        for (const batch of [1, 2, 5]) {
            const numbers = Array.from({ length: 4 * batch }, (_, i) => Math.fround(Math.sin(i)));
            const want = run(model('rows'), { x: { type: '<f4', shape: [batch, 4], bytes: floats(numbers) } }, ['y', 'sum']);
            const a = await ask('ModelInfer', rows([batch, 4], numbers));
            assert.deepStrictEqual(floats(a.outputs[0].contents.fp32_contents), Buffer.from(want.y));
            assert.deepStrictEqual(floats(a.outputs[1].contents.fp32_contents), Buffer.from(want.sum));
            const b = await ask('ModelInfer', { model_name: 'rows', model_version: '1',
                inputs: [{ name: 'x', datatype: 'FP32', shape: [batch, 4] }], outputs: [{ name: 'sum' }, { name: 'y' }],
                raw_input_contents: [floats(numbers)] });
            const at = (name) => b.raw_output_contents[b.outputs.findIndex((o) => o.name === name)];
            assert.deepStrictEqual(at('sum'), Buffer.from(want.sum));
            assert.deepStrictEqual(at('y'), Buffer.from(want.y));
        }
    },
    'a picture, again and again': async () => {
        const bytes = floats(Array.from({ length: 150528 }, (_, i) => Math.sin(i * 0.01)));
        const shape = [1, 3, 224, 224];
        const name = (await ask('ModelMetadata', { name: 'squeezenet1_1' })).inputs[0].name;
        const out = (await ask('ModelMetadata', { name: 'squeezenet1_1' })).outputs[0].name;
        const want = run(model('squeezenet1_1'), { [name]: { type: '<f4', shape, bytes } }, [out])[out];
        const request = { model_name: 'squeezenet1_1', inputs: [{ name, datatype: 'FP32', shape }], raw_input_contents: [bytes] };
        for (let i = 0; i < 5; i++) {  // ids of different lengths: numbers at every place of the message
            request.id = 'x'.repeat(i);
            const [a, b] = await Promise.all([ask('ModelInfer', request), ask('ModelInfer', request)]);
            for (const answer of [a, b]) assert.deepStrictEqual(answer.raw_output_contents[0], Buffer.from(want));
        }
    },
    'outputs by wish, and how it went': async () => {
        const a = await ask('ModelInfer', rows([1, 4], [1, 2, 3, 4], { outputs: [{ name: 'sum' }],
            parameters: { timing: { bool_param: true }, priority: { int64_param: 1 }, unheard_of: { string_param: 'x' } } }));
        assert.deepStrictEqual(a.outputs.map((o) => o.name), ['sum']);
        assert.deepStrictEqual(a.outputs[0].shape, []);
        assert.ok(Object.keys(a.parameters).length > 3);
    },
    'many at once, on several connections': async () => {
        const stubs = Array.from({ length: 4 }, () => connect(process.env.GRPC));
        const calls = [];
        for (let i = 0; i < 400; i++)
            calls.push(call(stubs[i % 4], 'ModelInfer', rows([1, 4], [i, 0, 0, 0], { id: `n-${i}` })).then((a) =>
                assert.strictEqual(a.id, `n-${i}`)));
        await Promise.all(calls);
        stubs.forEach((s) => s.close());
    },
    'what is refused': async () => {
        const x = floats([1, 2, 3, 4]);
        const bare = { name: 'x', datatype: 'FP32', shape: [1, 4] };
        await fails(status.NOT_FOUND, /'nobody' is not known/, ask('ModelInfer', { ...input(), model_name: 'nobody' }));
        await fails(status.NOT_FOUND, /not known/, ask('ModelInfer', { ...input(), model_version: '9' }));
        await refused(/raw contents besides/, { ...input(), raw_input_contents: [x] });
        await refused(/2 raw contents/, { model_name: 'rows', inputs: [bare], raw_input_contents: [x, x] });
        await refused(/16 bytes/, { model_name: 'rows', inputs: [bare], raw_input_contents: [x.subarray(1)] });
        await refused(/4 numbers/, input({ contents: { fp32_contents: [1, 2, 3] } }));
        await refused(/./, input({ name: 'z' }));
        await refused(/./, input({ datatype: 'FP64', contents: { fp64_contents: [1, 2, 3, 4] } }));
        await refused(/./, input({ shape: [4] }));
        await refused(/./, input({ shape: [1, 5], contents: { fp32_contents: [1, 2, 3, 4, 5] } }));
        await refused(/suit/, input({ contents: { int_contents: [1, 2, 3, 4] } }));
        await refused(/unknown/, input({ datatype: 'FLOAT' }));
        await refused(/./, { model_name: 'rows' });
        await refused(/./, { ...input(), outputs: [{ name: 'nothing' }] });
        await refused(/no number/, { ...input(), parameters: { timeout: { string_param: 'soon' } } });
        await refused(/shared memory/, input({ parameters: { shared_memory_region: { string_param: 'a' } } }));
        await assert.rejects(ask('ModelInfer', input({ shape: [65536, 65536, 65536, 65536] })));
        assert.strictEqual((await ask('ModelInfer', input())).outputs.length, 2);
    },
});
