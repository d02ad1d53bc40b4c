import type { Mutation } from './load.js'

const RUN = 'middleware/idempotency-key/run-leased.ts'
const LEASE = 'idempotency/leased/lease.ts'
const SCRIPTS = 'stores/redis/store/idempotency-scripts.ts'
const STORE = 'stores/redis/store/redis-store.ts'
const COMPENSATION = 'stores/redis/store/compensation.ts'
const CALL = 'stores/redis/connection/redis-call.ts'
const GROUP = 'stores/redis/connection/group-commit.ts'
const RESOLUTION = 'idempotency/leased/resolution.ts'
const ACCESS = 'stores/redis/store/record-access.ts'
const SEND = 'idempotency/buffered-response/send-buffered-response.ts'
const PHASE = 'idempotency/buffered-response/phase.ts'
const SINGLE = 'idempotency/single-use.ts'
const OPTIONS = 'middleware/idempotency-key/idempotency-options.ts'
const RETRY = 'client/service-fetch/retry-decision.ts'
const OUTCOME = 'client/service-fetch/attempt-outcome.ts'

const LIST = 'verification/denylist/local-denylist.ts'
const MERGE = 'verification/denylist/merge-entries.ts'
const POLL = 'stores/redis/denylist/poll.ts'
const WRITES = 'stores/redis/denylist/write-scripts.ts'
const KEY_SET = 'verification/key-set/key-set-state.ts'

const one = (file: string, from: string, to: string): readonly Mutation[] => [{ file, from, to }]

/** Wrong versions of the package, each without one rule of the protocol. */
export const MUTANTS: Readonly<Record<string, readonly Mutation[]>> = {
  'no lease is renewed': one(LEASE, 'if (mayRenew && !isRenewing) void renewOnce(now)', ''),
  'a lease is renewed forever after its run': one(
    RUN,
    'onComplete(result) {\n      lease.stopRenewing()',
    'onComplete(result) {',
  ),
  'maxRunSeconds does not end the renewals': one(
    LEASE,
    'const mayRenew = isStreaming || now - reservedAt < maxRunMs',
    'const mayRenew = true',
  ),
  'a failed store runs the handler': one(
    RUN,
    "    refuse(response, 'store_unavailable')\n    emit({ outcome: 'undecided', reason: 'store_unavailable', status: 503 })\n    return",
    "    reply = { outcome: 'reserved', fence: 1 }",
  ),
  'a result is sent before it is stored': one(
    SEND,
    'sendAfter(buffered, observer.onComplete({ status, headers, body }), () => sendEnd(buffered, args))',
    'void observer.onComplete({ status, headers, body }); sendAfter(buffered, Promise.resolve(), () => sendEnd(buffered, args))',
  ),
  'a stream begins before it is recorded': one(
    SEND,
    'sendAfter(buffered, observer.onStream(), () => startStreaming(buffered))',
    'sendAfter(buffered, (void observer.onStream(), Promise.resolve()), () => startStreaming(buffered))',
  ),
  'a result is not stored': one(
    RUN,
    "return settle({ type: 'finished', result: encoded }, 'result_kept', result.status)",
    'return Promise.resolve()',
  ),
  'an aborted run keeps its lease': one(RUN, "void settle({ type: 'abandoned' }, 'abandoned')", ''),
  'an aborted run is free again': one(
    RUN,
    "void settle({ type: 'abandoned' }, 'abandoned')",
    "void settle({ type: 'released' }, 'abandoned')",
  ),
  'release is ignored': one(RUN, '    isReleased = true\n', ''),
  'every run is released': one(RUN, 'let isReleased = false', 'let isReleased = true'),
  'a streamed result is free again': one(
    RUN,
    "return settle({ type: 'streamed' }, 'result_too_large', response.statusCode)",
    "return settle({ type: 'released' }, 'result_too_large', response.statusCode)",
  ),
  'retention in seconds for milliseconds': one(
    OPTIONS,
    'retentionMs: milliseconds(options.retentionSeconds)',
    'retentionMs: options.retentionSeconds',
  ),
  'lease in seconds for milliseconds': one(
    OPTIONS,
    'leaseMs: milliseconds(options.leaseSeconds)',
    'leaseMs: options.leaseSeconds',
  ),
  'the fingerprint is not compared': one(
    SCRIPTS,
    "if record.fingerprint ~= mine.fingerprint then return { 'mismatch' } end",
    '',
  ),
  'a running key is taken': one(SCRIPTS, "if left > 0 then return { 'running', left } end", ''),
  'an abandoned key is taken unasked': one(
    SCRIPTS,
    "if rerun ~= '1' then return { 'abandoned' } end",
    '',
  ),
  'an abandoned key is never taken': one(
    SCRIPTS,
    "if rerun ~= '1' then return { 'abandoned' } end",
    "do return { 'abandoned' } end",
  ),
  'a finished key runs again': one(
    SCRIPTS,
    "if record.state == 'd' then return { 'finished', string.sub(record.value, record.rest) } end",
    '',
  ),
  'a key without a stored result runs again': one(
    SCRIPTS,
    "if record.state == 'u' then return { 'result_not_stored' } end",
    '',
  ),
  'a reservation does not know its own': one(
    SCRIPTS,
    'local own = record.owner == mine.owner',
    'local own = false',
  ),
  'a late reservation takes the key that it freed': one(
    SCRIPTS,
    "if own then return { 'running', 0 } end",
    '',
  ),
  'the lease is counted without its retention': one(SCRIPTS, 'left = left - record.retention', ''),
  'the fence does not grow with the record': one(
    SCRIPTS,
    'fence = math.max(fence, record.fence + 1)',
    '',
  ),
  'the fence is a constant': one(
    SCRIPTS,
    'local fence = time[1] * 1000000 + time[2]\nlocal tombstone',
    'local fence = 1\nlocal tombstone',
  ),
  'a running record lives for its lease alone': one(
    SCRIPTS,
    'wholeMs(leaseMs) + wholeMs(retentionMs)',
    'wholeMs(leaseMs)',
  ),
  'a renewal by anybody': one(
    SCRIPTS,
    "if record.state ~= 'r' or record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end",
    '',
  ),
  'a renewal of the retention alone': one(
    SCRIPTS,
    "return redis.call('PEXPIRE', KEYS[1], ttl + tombstone_in(record, mine))",
    "return redis.call('PEXPIRE', KEYS[1], record.retention)",
  ),
  'a renewal is refused without a record': one(
    SCRIPTS,
    'local written = write(value, ttl)\nif written.err then return written end\nreturn 1\n`)\n\nexport const renewArguments',
    'return 0\n`)\n\nexport const renewArguments',
  ),
  'a settlement without its owner': one(
    SCRIPTS,
    "  if record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end\n  if record.state == 'd'",
    "  if record.state == 'd'",
  ),
  'a settlement without a tombstone': one(
    SCRIPTS,
    "return ['f', wholeMs(run.leaseMs)]",
    "return ['f', 1]",
  ),
  'a released key is kept as running': one(
    SCRIPTS,
    "return ['f', wholeMs(run.leaseMs)]",
    "return ['r', runningMs(run)]",
  ),
  'an abandoned record keeps its lease': one(
    SCRIPTS,
    "return ['r', wholeMs(run.retentionMs)]",
    "return ['r', runningMs(run)]",
  ),
  'a result lives for its lease': one(
    SCRIPTS,
    "return ['d', wholeMs(run.retentionMs)]",
    "return ['d', wholeMs(run.leaseMs)]",
  ),
  'a lost reply counts as not run': one(STORE, 'if (mayArrive) undo(request)', ''),
  'compensation without owner': one(
    COMPENSATION,
    'record.owner ~= mine.owner or record.fence == mine.fence',
    'record.fence == mine.fence',
  ),
  'compensation leaves no tombstone': one(
    COMPENSATION,
    "local written = write('1|f|' .. fence .. behind, math.max(ttl, tombstone))",
    "redis.call('DEL', KEYS[1])\nlocal written = {}",
  ),
  'compensation is tried once': one(
    COMPENSATION,
    'tryOnce(id, entry).then(schedule, schedule)',
    'tryOnce(id, entry).then(schedule, () => {})',
  ),
  'compensation ends with its first success': one(
    COMPENSATION,
    'if (now >= entry.until) pending.delete(id)',
    'pending.delete(id)',
  ),
  'compensation takes the run that was granted': one(
    COMPENSATION,
    ' or record.fence == mine.fence',
    '',
  ),
  'a repeated reservation is forgotten': one(STORE, 'if (state.isRepeated) {', 'if (false) {'),
  'a repeated reservation that is granted is forgotten': one(
    STORE,
    'if (state.isRepeated) {',
    "if (state.isRepeated && reservation.outcome !== 'reserved') {",
  ),
  'a lost reply is not asked again': one(
    CALL,
    'await untilDeadline(sleep(RETRY_DELAY_MS, undefined, { ref: false }), state)',
    'throw error',
  ),
  'the deadline of a call is ignored': one(
    CALL,
    'const cancel = atDeadline(state, () => reject(noReplyError(state)))',
    'const cancel = () => {}',
  ),
  'an unknown script is an error': one(
    CALL,
    "isReplyError(error) && error.message.startsWith('NOSCRIPT')",
    'false',
  ),
  'WAIT is ignored': one(
    GROUP,
    'const count = entry.call.isReserved(value) ? await acknowledged : min',
    'const count = min',
  ),
  'WAIT comes first': one(GROUP, 'String(min), String(timeoutMs)', 'String(0), String(timeoutMs)'),
  'a token is used up by its own retry alone': one(
    STORE,
    'if nonce and nonce ~= ARGV[1] then return 0 end',
    '',
  ),
  'a token is refused to its own retry': one(
    STORE,
    'if nonce and nonce ~= ARGV[1] then return 0 end',
    'if nonce then return 0 end',
  ),
  'a token is remembered for a second': one(
    SINGLE,
    'const ttlMs = Math.ceil((leftSeconds + CLOCK_DRIFT_SECONDS) * 1000)',
    'const ttlMs = 1000',
  ),
  'a token is remembered for milliseconds instead of seconds': one(
    SINGLE,
    '+ CLOCK_DRIFT_SECONDS) * 1000)',
    '+ CLOCK_DRIFT_SECONDS))',
  ),
  'a failed store accepts a token': one(
    SINGLE,
    "throw new Unavailable('store', 'the single-use store failed', { cause: error })",
    'first = true',
  ),
  'every token id is the same': one(
    SINGLE,
    'record([token.issuer, token.caller, tokenId]',
    'record([token.issuer, token.caller]',
  ),
  'an operator frees a running key': [
    ...one(
      RESOLUTION,
      "return hasLease(inspected) ? 'running' : 'abandoned'",
      "return 'abandoned'",
    ),
    ...one(
      ACCESS,
      'return String(hasLease ? record.retentionMs : ANY_TTL_MS)',
      'return String(ANY_TTL_MS)',
    ),
  ],
  'an operator settles another run': one(
    ACCESS,
    "if type ~= expected or redis.call('PTTL', KEYS[1]) > tonumber(max_ttl) then return 0 end",
    '',
  ),
  'an operator does not see a renewal': one(
    ACCESS,
    "if type ~= expected or redis.call('PTTL', KEYS[1]) > tonumber(max_ttl) then return 0 end",
    'if type ~= expected then return 0 end',
  ),
  'an operator keeps the owner': one(
    'idempotency/leased/record-keeper.ts',
    'as, owner: randomUUID() })',
    'as, owner: (snapshot.record as { owner: string }).owner })',
  ),
  'a caller retries in no time': one(
    RETRY,
    "return isRepeatable ? { type: 'again', afterMs: outcome.retryAfterMs } : END",
    "return isRepeatable ? { type: 'again', afterMs: 0 } : END",
  ),
  'a caller gives up while a run is in progress': one(
    OUTCOME,
    "return isInProgress(answer) ? { type: 'in_progress', retryAfterMs: waitMs } : { type: 'answered' }",
    "return { type: 'answered' }",
  ),
  'a caller does not retry an unavailable receiver': one(
    OUTCOME,
    "if (status === 503) return { type: 'unavailable', retryAfterMs: waitMs }",
    "if (status === 503) return { type: 'answered' }",
  ),
  'a client that leaves ends the run': one(
    PHASE,
    "    interrupted: 'orphaned',\n    destroyed: 'aborted',\n    discarded: 'discarded',\n  },\n  orphaned",
    "    interrupted: 'orphaned',\n    disconnected: 'aborted',\n    destroyed: 'aborted',\n    discarded: 'discarded',\n  },\n  orphaned",
  ),
  'the key is scoped to no caller': one(
    'idempotency/fingerprint.ts',
    'digestOfParts([issuer, audience, caller, operation, key])',
    'digestOfParts([issuer, audience, operation, key])',
  ),
  'a replay is not marked': one(
    'middleware/idempotency-key/idempotent-exchange.ts',
    "response.setHeader('Idempotent-Replayed', 'true')",
    '',
  ),
  'a replay may be cached': one(
    'middleware/idempotency-key/idempotent-exchange.ts',
    "response.setHeader('Idempotent-Replayed', 'true')\n  response.setHeader('Cache-Control', 'no-store')",
    "response.setHeader('Idempotent-Replayed', 'true')",
  ),

  'a denylist that was never read denies nobody': one(
    LIST,
    'if (refusesUnknown && Date.now() > knownUntilMs) return undefined',
    '',
  ),
  'a denylist is read once': one(
    POLL,
    'const isNew = isFirst || !isSameVersion(polled.version, state.version)',
    'const isNew = isFirst',
  ),
  'a denylist is polled once': one(
    POLL,
    'timer = setTimeout(() => void poll(), Math.max(0, startedAt + pollMs - performance.now()))\n    timer.unref()',
    '',
  ),
  'a version of the denylist must be higher': one(
    POLL,
    'const isNew = isFirst || !isSameVersion(polled.version, state.version)',
    'const isNew = isFirst || polled.version.number > state.highestNumber + 1e9',
  ),
  'what the list lacks is no longer denied': one(
    MERGE,
    'if (entry.number < (list.tombstones.get(target) ?? 0)) continue',
    'if (!list.entries.has(target)) continue',
  ),
  'an allowed caller stays denied': one(
    MERGE,
    'if (entry.number < (list.tombstones.get(target) ?? 0)) continue',
    '',
  ),
  'an entry has ended when it is read': one(
    MERGE,
    'if (entry.endsAt > list.serverSeconds) entries.set(target, entry)',
    '',
  ),
  'a denial has no version': one(
    WRITES,
    '  remove_ended(ENTRY_ENDS, ENTRIES, REASONS)\n  publish(number, nonce)',
    '  remove_ended(ENTRY_ENDS, ENTRIES, REASONS)',
  ),
  'an allowance has no version': one(
    WRITES,
    'remove_ended(MARK_ENDS, MARKS)\npublish(number, nonce)',
    'remove_ended(MARK_ENDS, MARKS)',
  ),
  'an allowance leaves no tombstone': one(
    WRITES,
    "redis.call('HSET', MARKS, target, table.concat({ number, time[1], listed, nonce }, '|'))",
    '',
  ),
  'an allowance removes nothing': one(
    WRITES,
    "redis.call('ZREM', ENTRY_ENDS, target)\nredis.call('HDEL', ENTRIES, target)",
    '',
  ),
  'a denial is not written': one(
    WRITES,
    "redis.call('HSET', ENTRIES, target, number .. '|' .. entry.ends .. '|' .. entry.cutoff)",
    '',
  ),
  'a denied caller passes': one(
    'verification/policy/check-denylists.ts',
    "return isCallerDenied ? 'caller_denied' : undefined",
    'return undefined',
  ),
  'a cached token is not looked up in the denylist': one(
    'verification/admit.ts',
    'const denial = checkLiveDenylists(identity, policy)',
    'const denial = undefined as ReturnType<typeof checkLiveDenylists>',
  ),
  'a cached token outlives its key': one(
    'verification/admit.ts',
    'now < validUntil && deps.keySource.current(key.kid) === key',
    'now < validUntil',
  ),
  'a key set is never refreshed': one(
    KEY_SET,
    'return state.current !== undefined && isPastRefresh(state.current, now)',
    'return false',
  ),
  'a key set never expires': one(
    KEY_SET,
    'if (current === undefined || event.at < current.expiresAt) return state',
    'return state',
  ),
  'a key set is used past its max-age': one(
    KEY_SET,
    'if (current === undefined || now < current.freshUntil || isUnreachable(state, now, span))\n    return state',
    'return state',
  ),
  'an unknown key is absent': one(
    'verification/key-set/find-key-step.ts',
    "if (hasSet && (isClosed || fetches.lastSuccessful > startedBefore)) return 'absent'",
    "if (hasSet) return 'absent'",
  ),
  'an unreachable key set refuses tokens': one(
    'verification/key-set/find-key-step.ts',
    "if (isClosed || hasFailed) return 'unavailable'",
    "if (isClosed || hasFailed) return 'absent'",
  ),
  'a refused token is not replaced': one(
    RETRY,
    "return isSafeToRepeat && !context.hasChangedToken ? { type: 'another_token' } : END",
    'return END',
  ),
  'a caller does not retry a lost answer': one(
    RETRY,
    "case 'network':\n      return isRepeatable",
    "case 'network':\n      return !isRepeatable",
  ),
  'the deadline of a caller is ignored': one(
    'client/service-fetch/call.ts',
    'startedAt + settings.deadlineMs - performance.now()',
    '1e6',
  ),
}
