// ModelStreamInfer: many inferences on one call, answered in order.
'use strict';
const { assert, grpc, client, ask, floats, until, runAll } = require('./client');
const { status } = grpc;

const rows = (id, numbers, more = {}) => ({ model_name: 'rows', id, ...more,
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], contents: { fp32_contents: numbers } }] });

// A call: send(request), next() -> answer, end() -> status
function open(how = {}) {
    const call = client.ModelStreamInfer(new grpc.Metadata(), how);
    const came = [];
    const waiting = [];
    let over;
    const ended = new Promise((resolve) => { over = resolve; });
    call.on('data', (d) => (waiting.length ? waiting.shift()(d) : came.push(d)));
    call.on('error', (e) => over(e));
    call.on('status', (s) => over(s));
    return {
        call, ended, send: (r) => call.write(r),
        next: () => (came.length ? Promise.resolve(came.shift()) : new Promise((resolve) => waiting.push(resolve))),
        end: () => { call.end(); return ended; },
    };
}

runAll({
    'one after the other': async () => {
        const s = open();
        for (let i = 0; i < 5; i++) {
            s.send(rows(`a-${i}`, [i, 0, 0, 0]));
            const { error_message, infer_response } = await s.next();
            assert.strictEqual(error_message, '');
            assert.strictEqual(infer_response.id, `a-${i}`);
            const alone = await ask('ModelInfer', rows(`a-${i}`, [i, 0, 0, 0]));
            assert.deepStrictEqual(infer_response, alone);
        }
        assert.strictEqual((await s.end()).code, status.OK);
    },
    'many at once come back in order': async () => {
        const s = open();
        for (let i = 0; i < 200; i++) s.send(rows(`b-${i}`, [i, 1, 2, 3]));
        const ended = s.end();
        for (let i = 0; i < 200; i++) assert.strictEqual((await s.next()).infer_response.id, `b-${i}`);
        assert.strictEqual((await ended).code, status.OK);
    },
    'a bad one is told, and the others go on': async () => {
        const s = open();
        s.send(rows('c-1', [1, 2, 3, 4]));
        s.send(rows('c-2', [1, 2, 3]));
        s.send(rows('c-3', [1, 2, 3, 4], { model_name: 'nobody' }));
        s.send(rows('c-4', [1, 2, 3, 4], { parameters: { timeout: { int64_param: -1 } } }));
        s.send(rows('c-5', [1, 2, 3, 4]));
        assert.strictEqual((await s.next()).infer_response.id, 'c-1');
        assert.match((await s.next()).error_message, /4 numbers/);
        const other = await s.next();
        assert.match(other.error_message, /'nobody' is not known/);
        assert.strictEqual(other.infer_response.id, 'c-3');
        assert.match((await s.next()).error_message, /timeout/);
        assert.strictEqual((await s.next()).infer_response.id, 'c-5');
        assert.strictEqual((await s.end()).code, status.OK);
    },
    'pictures': async () => {
        const { inputs } = await ask('ModelMetadata', { name: 'squeezenet1_1' });
        const request = (id) => ({ model_name: 'squeezenet1_1', id, raw_input_contents: [floats(new Float32Array(150528).fill(0.5))],
            inputs: [{ name: inputs[0].name, datatype: 'FP32', shape: [1, 3, 224, 224] }] });
        const alone = await ask('ModelInfer', request('x'));
        const s = open();
        for (let i = 0; i < 30; i++) s.send(request(`d-${i}`));  // 18 MB: more than a window
        const ended = s.end();
        for (let i = 0; i < 30; i++) {
            const { infer_response } = await s.next();
            assert.strictEqual(infer_response.id, `d-${i}`);
            assert.deepStrictEqual(infer_response.raw_output_contents, alone.raw_output_contents);
        }
        assert.strictEqual((await ended).code, status.OK);
    },
    'nothing at all': async () => {
        assert.strictEqual((await open().end()).code, status.OK);
    },
    'cancelled': async () => {
        const s = open();
        for (let i = 0; i < 50; i++) s.send(rows(`e-${i}`, [i, 1, 2, 3]));
        await s.next();
        s.call.cancel();
        assert.strictEqual((await s.ended).code, status.CANCELLED);
        await until('the server goes on', async () => (await ask('ServerLive')).live);
    },
    'a deadline of the whole call': async () => {
        const s = open({ deadline: Date.now() + 300 });
        s.send(rows('f-1', [1, 2, 3, 4]));
        await s.next();
        assert.strictEqual((await s.ended).code, status.DEADLINE_EXCEEDED);
    },
});
