import { type Mutants, mutantsOf } from './load.js'

/** Wrong versions of the package, each without one rule of the protocol. */
export const MUTANTS: Mutants = {
  ...mutantsOf('idempotency/leased/lease.ts', {
    'no lease is renewed': ['if (mayRenew) {', 'if (false) {'],
    'maxRunSeconds does not end the renewals': [
      'const mayRenew = now - reservedAt < maxRunMs',
      'const mayRenew = true',
    ],
  }),
  ...mutantsOf('idempotency/leased/leased-run.ts', {
    'a failed store runs the handler': [
      "return { outcome: 'undone', reason: 'store_unavailable' }",
      "reservation = { outcome: 'reserved', fence: 1 }",
    ],
    'a result is not stored': [
      ": settle({ type: 'finished', result: ending.result }, 'result_kept')",
      ": Promise.resolve('result_kept' as const)",
    ],
    'an aborted run keeps its lease': [
      "return settle({ type: 'abandoned' }, 'abandoned')",
      "return Promise.resolve('abandoned' as const)",
    ],
    'an aborted run is free again': [
      "return settle({ type: 'abandoned' }, 'abandoned')",
      "return settle({ type: 'released' }, 'abandoned')",
    ],
    'an aborted run does not learn of it': ['await lease.abandon()\n', ''],
    'a stream is not recorded': [
      "? settle({ type: 'not_stored' }, 'result_too_large')",
      "? Promise.resolve('result_too_large' as const)",
    ],
    'a streamed result is free again': [
      "? settle({ type: 'not_stored' }, 'result_too_large')",
      "? settle({ type: 'released' }, 'result_too_large')",
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/run.ts', {
    'release is ignored': ['      isReleased = true\n', ''],
    'every run is released': ['let isReleased = false', 'let isReleased = true'],
  }),
  ...mutantsOf('idempotency/buffered-response/buffer-response.ts', {
    'a result is sent before it is stored': [
      'wait(buffered, () => observer.onComplete({ status, headers, body }))',
      'wait(buffered, async () => void observer.onComplete({ status, headers, body }))',
    ],
    'a stream begins before it is recorded': [
      'wait(buffered, () => buffered.observer.onStream())',
      'wait(buffered, async () => void buffered.observer.onStream())',
    ],
    'a client that leaves ends the run': [
      'watchClosing(response, buffered.sources, () => abort(buffered))',
      "watchClosing(response, buffered.sources, () => abort(buffered)); response.once('close', () => abort(buffered))",
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/idempotency-options.ts', {
    'retention in seconds for milliseconds': [
      'retentionMs: milliseconds(options.retentionSeconds)',
      'retentionMs: options.retentionSeconds',
    ],
    'lease in seconds for milliseconds': [
      'leaseMs: milliseconds(options.leaseSeconds)',
      'leaseMs: options.leaseSeconds',
    ],
  }),
  ...mutantsOf('stores/redis/store/idempotency-scripts.ts', {
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
    'a finished key runs again': [
      "if record.state == 'd' then return { 'finished', string.sub(record.value, record.rest) } end",
      '',
    ],
    'a key without a stored result runs again': [
      "if record.state == 'u' then return { 'result_not_stored' } end",
      '',
    ],
    'a reservation does not know its own': [
      'local own = record.owner == mine.owner',
      'local own = false',
    ],
    'a late reservation takes the key that it freed': [
      "if own then return { 'running', 0 } end",
      '',
    ],
    'the lease is counted without its retention': ['left = left - record.retention', ''],
    'the fence does not grow with the record': ['fence = math.max(fence, record.fence + 1)', ''],
    'the fence is a constant': [
      'local fence = time[1] * 1000000 + time[2]\nlocal tombstone',
      'local fence = 1\nlocal tombstone',
    ],
    'a running record lives for its lease alone': [
      'wholeMs(leaseMs) + wholeMs(retentionMs)',
      'wholeMs(leaseMs)',
    ],
    'a renewal by anybody': [
      "if record.state ~= 'r' or record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end",
      '',
    ],
    'a renewal of the retention alone': [
      "return redis.call('PEXPIRE', KEYS[1], ttl + tombstone_in(record, mine))",
      "return redis.call('PEXPIRE', KEYS[1], record.retention)",
    ],
    'a renewal is refused without a record': [
      'local written = write(value, ttl)\nif written.err then return written end\nreturn 1\n`)\n\nexport const renewArguments',
      'return 0\n`)\n\nexport const renewArguments',
    ],
    'a settlement without its owner': [
      "  if record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end\n  if record.state ~= 'r' then return record.state",
      "  if record.state ~= 'r' then return record.state",
    ],
    'a settlement without a tombstone': ["return ['f', wholeMs(run.leaseMs)]", "return ['f', 1]"],
    'a released key is kept as running': [
      "return ['f', wholeMs(run.leaseMs)]",
      "return ['r', runningMs(run)]",
    ],
    'an abandoned record keeps its lease': [
      "return ['r', wholeMs(run.retentionMs)]",
      "return ['r', runningMs(run)]",
    ],
    'a result lives for its lease': [
      "return ['d', wholeMs(run.retentionMs)]",
      "return ['d', wholeMs(run.leaseMs)]",
    ],
  }),
  ...mutantsOf('stores/redis/store/redis-store.ts', {
    'a lost reply counts as not run': ['if (mayArrive) undo(request)', ''],
    'a repeated reservation is forgotten': ['if (state.isRepeated) {', 'if (false) {'],
    'a repeated reservation that is granted is forgotten': [
      'if (state.isRepeated) {',
      "if (state.isRepeated && reservation.outcome !== 'reserved') {",
    ],
    'a token is used up by its own retry alone': [
      'if nonce and nonce ~= ARGV[1] then return 0 end',
      '',
    ],
    'a token is refused to its own retry': [
      'if nonce and nonce ~= ARGV[1] then return 0 end',
      'if nonce then return 0 end',
    ],
    'a token is not replicated': [
      'isConsumed(await reservations.run(call))',
      'isConsumed(await connection.run(call))',
    ],
    'a repeated token writes nothing that WAIT covers': [
      'if nonce and nonce ~= ARGV[1] then return 0 end',
      'if nonce then return nonce == ARGV[1] and 1 or 0 end',
    ],
  }),
  ...mutantsOf('stores/redis/store/compensation.ts', {
    'compensation without owner': [
      'record.owner ~= mine.owner or record.fence == mine.fence',
      'record.fence == mine.fence',
    ],
    'compensation leaves no tombstone': [
      "local written = write('1|f|' .. fence .. tail, math.max(ttl, tombstone))",
      "redis.call('DEL', KEYS[1])\nlocal written = {}",
    ],
    'compensation is tried once': [
      'await undoUntilDone(work, forMs)',
      'await undo(work).catch(() => {}); return',
    ],
    'compensation ends with its first success': [
      'if (isClosed || begunAt - startedAt >= forMs) return',
      'return',
    ],
    'compensation takes the run that was granted': [' or record.fence == mine.fence', ''],
  }),
  ...mutantsOf('stores/redis/connection/redis-call.ts', {
    'a lost reply is not asked again': [
      'await untilDeadline(sleep(RETRY_DELAY_MS, undefined, { ref: false }), state)',
      'throw error',
    ],
    'the deadline of a call is ignored': ['reject(noReplyError(state))', ''],
    'an unknown script is an error': [
      "isReplyError(error) && error.message.startsWith('NOSCRIPT')",
      'false',
    ],
  }),
  ...mutantsOf('stores/redis/connection/group-commit.ts', {
    'WAIT is ignored': [
      'const count = entry.call.isReserved(value) ? await acknowledged : min',
      'const count = min',
    ],
    'WAIT comes first': ['wait(min, timeoutMs)', 'wait(0, timeoutMs)'],
    'the source of a script comes after WAIT': [
      "entry.command = 'eval'\n      enqueue(entry)",
      "const source = commandOf('eval', entry.call, entry.state)\n" +
        '      link.current()?.runScript(source).then(entry.resolve, entry.reject)',
    ],
  }),
  ...mutantsOf('idempotency/single-use.ts', {
    'a token is remembered for a second': [
      'ttlMs: Math.ceil((leftSeconds + CLOCK_DRIFT_SECONDS) * 1000),',
      'ttlMs: leftSeconds && 1000,',
    ],
    'a token is remembered for milliseconds instead of seconds': [
      '+ CLOCK_DRIFT_SECONDS) * 1000)',
      '+ CLOCK_DRIFT_SECONDS))',
    ],
    'a failed store accepts a token': [
      "throw new Unavailable('store', 'the single-use store failed', { cause: error })",
      'first = true',
    ],
    'every token id is the same': [
      'useOf([token.issuer, token.caller, tokenId]',
      'useOf([token.issuer, token.caller]',
    ],
  }),
  ...mutantsOf('stores/redis/store/record-access.ts', {
    'an operator settles another run': [
      'if redis.sha1hex(stored()) ~= digest then return 0 end',
      '',
    ],
    'an operator hears that a record is settled, and it is not': [
      'return reply === 1\n',
      'return true\n',
    ],
    'an operator does not see a renewal': [
      "if may_have_lease and redis.call('PTTL', KEYS[1]) > tonumber(record.retention) then return 0 end",
      '',
    ],
  }),
  ...mutantsOf('idempotency/leased/record-keeper.ts', {
    'an operator keeps the owner': [
      'as, owner: randomUUID() })',
      'as, owner: (snapshot.record as { owner: string }).owner })',
    ],
  }),
  ...mutantsOf('client/service-fetch/retry-decision.ts', {
    'a caller makes one attempt too many': [
      'context.attempts >= context.maxAttempts',
      'context.attempts > context.maxAttempts',
    ],
    'a caller does not wait for an unavailable receiver': [
      'const { retryAfterMs: afterMs = networkDelayMs(context) } = outcome',
      'const afterMs = networkDelayMs(context)',
    ],
    'a caller retries in no time': [
      "return isRepeatable ? { type: 'retry', afterMs: outcome.retryAfterMs } : END",
      "return isRepeatable ? { type: 'retry', afterMs: 0 } : END",
    ],
    'a refused token is not replaced': [
      "return isSafeToRepeat && !context.hasChangedToken ? { type: 'another_token' } : END",
      'return END',
    ],
    'a caller does not retry a lost answer': [
      "case 'network':\n      return isRepeatable",
      "case 'network':\n      return !isRepeatable",
    ],
  }),
  ...mutantsOf('client/service-fetch/retry-decision.ts', {
    'a caller gives up while a run is in progress': [
      "return { type: 'in_progress', retryAfterMs: waitMs }",
      "return { type: 'answered' }",
    ],
    'a caller does not retry an unavailable receiver': [
      'const UNAVAILABLE = new Set([502, 503, 504])',
      'const UNAVAILABLE = new Set([502, 504])',
    ],
  }),
  ...mutantsOf('idempotency/fingerprint.ts', {
    'the key is scoped to no caller': [
      'digestOfParts([issuer, audience, caller, operation, key])',
      'digestOfParts([issuer, audience, operation, key])',
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/answer.ts', {
    'a replay is not marked': ["response.setHeader('Idempotent-Replayed', 'true')", ''],
    'a replay may be cached': [
      "response.setHeader('Idempotent-Replayed', 'true')\n  response.setHeader('Cache-Control', 'no-store')",
      "response.setHeader('Idempotent-Replayed', 'true')",
    ],
  }),
  ...mutantsOf('verification/denylist/local-denylist.ts', {
    'a denylist that was never read denies nobody': ['if (refusesUnknown) return undefined', ''],
  }),
  ...mutantsOf('stores/redis/denylist/poll.ts', {
    'a denylist is read once': [
      'const isNew = isFirst || !isSameVersion(polled.version, state.version)',
      'const isNew = isFirst',
    ],
    'a version of the denylist must be higher': [
      'const isNew = isFirst || !isSameVersion(polled.version, state.version)',
      'const isNew = isFirst || polled.version.number > state.highestNumber + 1e9',
    ],
  }),
  ...mutantsOf('verification/denylist/merge-entries.ts', {
    'what the list lacks is no longer denied': [
      'if (entry.number < (list.tombstones.get(target) ?? 0)) continue',
      'if (!list.entries.has(target)) continue',
    ],
    'an allowed caller stays denied': [
      'if (entry.number < (list.tombstones.get(target) ?? 0)) continue',
      '',
    ],
    'an entry has ended when it is read': [
      'if (entry.endsAt > list.serverSeconds) entries.set(target, entry)',
      '',
    ],
  }),
  ...mutantsOf('stores/redis/denylist/scripts.ts', {
    'a denial has no version': [
      '  remove_some_ended(hashes, second_of)\n  publish(number, nonce)',
      '  remove_some_ended(hashes, second_of)',
    ],
    'an allowance has no version': [
      "publish(number, nonce)\nredis.call('HSET', MARKS",
      "redis.call('HSET', MARKS",
    ],
    'an allowance leaves no tombstone': [
      "redis.call('HSET', MARKS, target, table.concat({ number, time[1], listed, nonce }, '|'))",
      '',
    ],
    'an allowance removes nothing': ["redis.call('HDEL', ENTRIES, target)", ''],
    'a denial is not written': [
      "redis.call('HSET', ENTRIES, target, number .. '|' .. entry.ends .. '|' .. entry.cutoff)",
      '',
    ],
  }),
  ...mutantsOf('verification/policy/check-denylists.ts', {
    'a denied caller passes': [
      "return isCallerDenied ? 'caller_denied' : undefined",
      'return undefined',
    ],
  }),
  ...mutantsOf('verification/admit.ts', {
    'a cached token is not looked up in the denylist': [
      'const denial = checkLiveDenylists(identity, policy)',
      'const denial = undefined as ReturnType<typeof checkLiveDenylists>',
    ],
    'a cached token outlives its key': [
      'now < validUntil && deps.keySource.current(key.kid) === key',
      'now < validUntil',
    ],
  }),
  ...mutantsOf('verification/key-set/key-set-state.ts', {
    'a key set is never refreshed': [
      'return state.current !== undefined && isPastRefresh(state.current, now)',
      'return false',
    ],
    'a key set never expires': [
      'if (current === undefined || event.at < current.expiresAt) return state',
      'return state',
    ],
    'a key set is used past its max-age': [
      'if (current === undefined || now < current.freshUntil || isUnreachable(state, now, span))\n    return state',
      'return state',
    ],
  }),
  ...mutantsOf('verification/key-set/key-set-state.ts', {
    'an unknown key is absent': [
      "if (hasSet && (isClosed || fetches.lastSuccessful > startedBefore)) return 'absent'",
      "if (hasSet) return 'absent'",
    ],
    'an unreachable key set refuses tokens': [
      "if (isClosed || hasFailed) return 'unavailable'",
      "if (isClosed || hasFailed) return 'absent'",
    ],
  }),
  ...mutantsOf('client/service-fetch/service-fetch.ts', {
    'the deadline of a caller is ignored': [
      'startedAt + settings.deadlineMs - performance.now()',
      '1e6',
    ],
  }),
  'an operator frees a running key': [
    {
      file: 'idempotency/leased/record-keeper.ts',
      from: "return hasLease(inspected) ? 'running' : 'abandoned'",
      to: "return 'abandoned'",
    },
    {
      file: 'stores/redis/store/record-access.ts',
      from: "if may_have_lease and redis.call('PTTL', KEYS[1]) > tonumber(record.retention) then return 0 end",
      to: '',
    },
  ],
}
