import type { Mutants } from './load.js'

/** Wrong versions of the package, each of which breaks another promise. */
export const MUTANTS: Mutants = {
  'idempotency/leased/leased-run.ts': {
    'no lease is renewed': ['if (mayRenew) {', 'if (false) {'],
    'a failed store runs the handler': [
      "return { outcome: 'undone', reason: 'store_unavailable' }",
      "reservation = { outcome: 'reserved', fence: 1 }",
    ],
    'an aborted run does not learn of it': ['await lease.abandon()\n', ''],
    'a streamed result is free again': [
      "? settle({ type: 'not_stored' }, 'result_too_large')",
      "? settle({ type: 'released' }, 'result_too_large')",
    ],
  },
  'middleware/idempotency-key/run.ts': {
    'release is ignored': ['    isReleased = true\n', ''],
  },
  'idempotency/buffered-response/buffer-response.ts': {
    'a result is sent before it is stored': [
      'wait(buffered, () => observer.onComplete({ status, headers, body }))',
      'wait(buffered, async () => void observer.onComplete({ status, headers, body }))',
    ],
    'a client that leaves ends the run': [
      'watchClosing(response, () => abort(buffered))',
      "watchClosing(response, () => abort(buffered)); response.once('close', () => abort(buffered))",
    ],
  },
  'stores/redis/store/idempotency-scripts.ts': {
    'the fingerprint is not compared': [
      "if record.fingerprint ~= mine.fingerprint then return { 'mismatch' } end",
      '',
    ],
    'a running key is taken': ["if left > 0 then return { 'running', left } end", ''],
    'an abandoned key is taken unasked': ["if rerun ~= '1' then return { 'abandoned' } end", ''],
    'an abandoned key is never taken': [
      "if rerun ~= '1' then return { 'abandoned' } end",
      "do return { 'abandoned' } end",
    ],
    'the fence does not grow with the record': ['fence = math.max(fence, record.fence + 1)', ''],
    'a settlement without its owner': [
      "  if record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end\n  if record.state ~= 'r' then return record.state",
      "  if record.state ~= 'r' then return record.state",
    ],
    'a result lives for its lease': [
      "return ['d', wholeMs(run.retentionMs)]",
      "return ['d', wholeMs(run.leaseMs)]",
    ],
  },
  'stores/redis/store/redis-store.ts': {
    'a repeated reservation is forgotten': ['if (state.isRepeated) {', 'if (false) {'],
    'a token is refused to its own retry': [
      'if nonce and nonce ~= ARGV[1] then return 0 end',
      'if nonce then return 0 end',
    ],
    'a token is not replicated': [
      'isConsumed(await reservations.run(call))',
      'isConsumed(await connection.run(call))',
    ],
  },
  'stores/redis/store/compensation.ts': {
    'compensation without owner': [
      'record.owner ~= mine.owner or record.fence == mine.fence',
      'record.fence == mine.fence',
    ],
  },
  'stores/redis/connection/group-commit.ts': {
    'WAIT is ignored': ['const acknowledged = await count', 'const acknowledged = min'],
  },
  'idempotency/single-use.ts': {
    'a token is remembered for a second': [
      'ttlMs: Math.ceil((leftSeconds + CLOCK_DRIFT_SECONDS) * 1000),',
      'ttlMs: leftSeconds && 1000,',
    ],
    'a failed store accepts a token': [
      "throw new Unavailable('store', 'the single-use store failed', { cause: error })",
      'first = true',
    ],
  },
  'stores/redis/store/record-access.ts': {
    'an operator settles another run': [
      'if redis.sha1hex(stored()) ~= digest then return 0 end',
      '',
    ],
    'an operator does not see a renewal': [
      "if may_have_lease and redis.call('PTTL', KEYS[1]) > tonumber(record.retention) then return 0 end",
      '',
    ],
  },
  'client/service-fetch/retry-decision.ts': {
    'a caller retries in no time': [
      "return isRepeatable ? { type: 'retry', afterMs: outcome.retryAfterMs } : END",
      "return isRepeatable ? { type: 'retry', afterMs: 0 } : END",
    ],
  },
  'idempotency/fingerprint.ts': {
    'the key is scoped to no caller': [
      'digestOfParts([issuer, audience, caller, operation, key])',
      'digestOfParts([issuer, audience, operation, key])',
    ],
  },
  'middleware/idempotency-key/answer.ts': {
    'a replay is not marked': ["response.setHeader('Idempotent-Replayed', 'true')", ''],
  },
  'verification/denylist/local-denylist.ts': {
    'a denylist that was never read denies nobody': ['if (refusesUnknown) return undefined', ''],
  },
  'verification/denylist/merge-entries.ts': {
    'an allowed caller stays denied': [
      'if (entry.number < (list.tombstones.get(target) ?? 0)) continue',
      '',
    ],
  },
  'stores/redis/denylist/scripts.ts': {
    'a denial has no version': [
      '  remove_some_ended(hashes, second_of)\n  publish(number, nonce)',
      '  remove_some_ended(hashes, second_of)',
    ],
  },
  'verification/admit.ts': {
    'a cached token outlives its key': [
      'now < validUntil && deps.keySource.current(key.kid) === key',
      'now < validUntil',
    ],
  },
  'verification/key-set/remote-source.ts': {
    'an unreachable key set refuses tokens': [
      'if (isClosed || hasFailed) return Promise.reject(unavailable())',
      'if (isClosed || hasFailed) return undefined',
    ],
  },
}
