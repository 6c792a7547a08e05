// Every call but inference: what it answers, that REST says the same, and what it refuses.
'use strict';
const { assert, grpc, health, call, ask, fails, rest, restJson, runAll } = require('./client');
const { status } = grpc;

const numbers = (stat) => ({ count: Number(stat.count), ns: Number(stat.ns) });

runAll({
    'server lives and is ready': async () => {
        assert.deepStrictEqual(await ask('ServerLive'), { live: true });
        assert.deepStrictEqual(await ask('ServerReady'), { ready: true });
    },
    'server metadata': async () => {
        const m = await ask('ServerMetadata');
        assert.deepStrictEqual(m, await restJson('/v2'));
        assert.strictEqual(m.name, 'cotenant');
    },
    'model readiness': async () => {
        assert.deepStrictEqual(await ask('ModelReady', { name: 'rows' }), { ready: true });
        assert.deepStrictEqual(await ask('ModelReady', { name: 'rows', version: '1' }), { ready: true });
        await fails(status.NOT_FOUND, /'nobody' is not known/, ask('ModelReady', { name: 'nobody' }));
        await fails(status.NOT_FOUND, /not known/, ask('ModelReady', { name: 'rows', version: '7' }));
    },
    'model metadata': async () => {
        for (const name of ['rows', 'echo', 'squeezenet1_1']) {
            const m = await ask('ModelMetadata', { name });
            const other = await restJson(`/v2/models/${name}`);
            for (const t of [...m.inputs, ...m.outputs]) t.shape = t.shape.map(Number);
            for (const key of ['name', 'versions', 'platform', 'inputs', 'outputs'])
                assert.deepStrictEqual(m[key], other[key]);
            assert.strictEqual(Number(m.properties.target_ms), Number(other.parameters.target_ms.toPrecision(6)));
        }
        await fails(status.NOT_FOUND, /not known/, ask('ModelMetadata', { name: '../../etc' }));
        await fails(status.NOT_FOUND, /not known/, ask('ModelMetadata', { name: '' }));
    },
    'model configuration': async () => {
        for (const name of ['rows', 'echo']) {
            const { config } = await ask('ModelConfig', { name });
            const other = await restJson(`/v2/models/${name}/config`);
            for (const t of [...config.input, ...config.output]) {
                t.dims = t.dims.map(Number);
                delete t.optional;
            }
            for (const key of ['name', 'platform', 'backend', 'max_batch_size', 'input', 'output', 'parameters',
                'dynamic_batching'])
                assert.deepStrictEqual(config[key], other[key], key);
            assert.strictEqual(config.version_policy.latest.num_versions, other.version_policy.latest.num_versions);
        }
        await fails(status.NOT_FOUND, /not known/, ask('ModelConfig', { name: 'nobody' }));
    },
    'statistics': async () => {
        const request = { model_name: 'rows', inputs: [{ name: 'x', datatype: 'FP32', shape: [2, 4],
            contents: { fp32_contents: [1, 2, 3, 4, 5, 6, 7, 8] } }] };
        await ask('ModelInfer', request);
        const { model_stats } = await ask('ModelStatistics', { name: 'rows' });
        const other = (await restJson('/v2/models/rows/stats')).model_stats;
        assert.strictEqual(model_stats.length, 1);
        const [ours, theirs] = [model_stats[0], other[0]];
        for (const key of ['name', 'version']) assert.strictEqual(ours[key], theirs[key]);
        for (const key of ['last_inference', 'inference_count', 'execution_count'])
            assert.strictEqual(Number(ours[key]), theirs[key]);
        for (const key of ['success', 'fail', 'queue', 'compute_input', 'compute_infer', 'compute_output'])
            assert.deepStrictEqual(numbers(ours.inference_stats[key]), theirs.inference_stats[key]);
        assert.ok(Number(ours.inference_stats.success.count) >= 1 && Number(ours.inference_count) >= 2);
        assert.strictEqual(ours.batch_stats.length, theirs.batch_stats.length);
        ours.batch_stats.forEach((b, i) => {
            assert.strictEqual(Number(b.batch_size), theirs.batch_stats[i].batch_size);
            assert.deepStrictEqual(numbers(b.compute_infer), theirs.batch_stats[i].compute_infer);
        });
        assert.strictEqual((await ask('ModelStatistics', {})).model_stats.length, 3);
        await fails(status.NOT_FOUND, /not known/, ask('ModelStatistics', { name: 'nobody' }));
    },
    'health': async () => {
        for (const service of ['', 'inference.GRPCInferenceService', 'rows'])
            assert.deepStrictEqual(await call(health, 'Check', { service }), { status: 'SERVING' });
        await fails(status.NOT_FOUND, /not known/, call(health, 'Check', { service: 'nobody' }));
        await new Promise((resolve) => health.Watch({ service: '' }).on('error', (e) => {
            assert.strictEqual(e.code, status.UNIMPLEMENTED);
            resolve();
        }).resume());
    },
    'administration is not for everybody': async () => {
        const denied = /not enabled here/;
        await fails(status.PERMISSION_DENIED, denied, ask('RepositoryIndex'));
        await fails(status.PERMISSION_DENIED, denied, ask('RepositoryModelLoad', { model_name: 'rows' }));
        await fails(status.PERMISSION_DENIED, denied, ask('RepositoryModelUnload', { model_name: 'rows' }));
        assert.strictEqual((await rest('POST', '/v2/repository/index')).status, 403);
        assert.deepStrictEqual(await ask('ModelReady', { name: 'rows' }), { ready: true });
    },
    'unknown calls': async () => {
        await fails(status.UNIMPLEMENTED, /no such call/, ask('SystemSharedMemoryStatus'));
    },
});
