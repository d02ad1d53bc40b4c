// biome-ignore-all lint/suspicious/noTemplateCurlyInString: snippets of source
import type { Mutation } from '../load.js'

const POSTGRES = 'stores/postgres'
const RECORDS = `${POSTGRES}/sql/record-statements.ts`
const BEGIN = `${POSTGRES}/sql/begin-statements.ts`
const SCHEMA = `${POSTGRES}/schema.ts`
const LITERALS = `${POSTGRES}/sql/literals.ts`
const TOKENS = `${POSTGRES}/sql/statements.ts`
const RESOLVE = `${POSTGRES}/run/resolve-commit.ts`
const ATTEMPT = `${POSTGRES}/run/transaction-attempt.ts`
const STAGE = `${POSTGRES}/run/run-stage.ts`
const OUTCOME = `${POSTGRES}/run/run-outcome.ts`
const LIVE = `${POSTGRES}/run/live-runs.ts`
const STATE = `${POSTGRES}/run/transaction-state.ts`
const STORE = `${POSTGRES}/postgres-store.ts`
const POOL = `${POSTGRES}/adapters/pg-pool.ts`
const COUPLED = 'middleware/idempotency-key/run-coupled.ts'
const ANSWER = 'middleware/idempotency-key/coupled-answer.ts'
const BUFFERED = 'idempotency/coupled/buffered-answer.ts'

const LOCK = 'is_locked := pg_catalog.pg_try_advisory_xact_lock($3);'
const LOOK_UP =
  "${recordText('$2')}\n      into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;"

const one = (file: string, from: string, to: string): readonly Mutation[] => [{ file, from, to }]

/** Wrong versions of the coupled store, each without one rule of the protocol. */
export const COUPLED_MUTANTS: Readonly<Record<string, readonly Mutation[]>> = {
  'a record that is there is ignored': one(
    RECORDS,
    '`${singleUseSql}, ${timeFromNow(retentionMs)})`,',
    '`${singleUseSql}, ${timeFromNow(retentionMs)}) on conflict do nothing`,',
  ),
  'a refusal overwrites a record': one(
    RECORDS,
    'insert(ids, record, String(record.usedToken)),',
    '((own) => ({ ...own, text: `${own.text} on conflict (id) do update set result = excluded.result` }))(insert(ids, record, String(record.usedToken))),',
  ),
  'the lock and the look-up are one statement': one(
    SCHEMA,
    `${LOCK}\n    select ${LOOK_UP}`,
    "with locked as materialized (select pg_catalog.pg_try_advisory_xact_lock($3) as is_locked) select is_locked, found.record into is_locked, stored from locked left join lateral (select ${recordText('$2')} as record from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1) as found on true;",
  ),
  'the look-up comes before the lock': one(
    SCHEMA,
    `${LOCK}\n    select ${LOOK_UP}`,
    `select ${LOOK_UP}\n    ${LOCK}`,
  ),
  'no lock is taken': one(SCHEMA, LOCK, 'is_locked := true;'),
  'an expired record counts as absent': one(
    SCHEMA,
    'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;',
    'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1 and expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp();',
  ),
  'an idle transaction has no time limit': one(
    BEGIN,
    "  'idle_in_transaction_session_timeout',\n",
    '',
  ),
  'a record lasts for seconds instead of milliseconds': one(
    LITERALS,
    'Math.ceil(Math.max(0, finite(durationMs))) / 1000',
    'Math.ceil(Math.max(0, finite(durationMs))) / 1_000_000',
  ),
  'the sweeper deletes what has not expired': one(
    `${POSTGRES}/sweep.ts`,
    'OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp()',
    'OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()',
  ),
  'an answer is sent before COMMIT': one(
    COUPLED,
    'return answer.ending\n',
    'void answer.ending.then(() => answer.send())\n      return answer.ending\n',
  ),
  'a lost COMMIT is looked up without the lock': one(
    RESOLVE,
    'await query(store, store.statements.awaitRun(commit.ids, { waitMs: leftMs }), limits)\n',
    '',
  ),
  'a lost COMMIT counts as rolled back': one(
    RESOLVE,
    "step === 'commit' ? 'unclear' : 'unavailable'",
    "'unavailable'",
  ),
  'a lost COMMIT counts as done': one(
    RESOLVE,
    'const status = await resolveCommit(store, commit)',
    "const status: CommitStatus = { type: 'committed' }",
  ),
  'the record of another counts as the own': one(
    RESOLVE,
    'const isOwn = isEqual && !(await isRolledBack(store, fence))',
    'const isOwn = true',
  ),
  'an equal record counts as the own': one(
    RESOLVE,
    'const isOwn = isEqual && !(await isRolledBack(store, fence))',
    'const isOwn = isEqual',
  ),
  'a duplicate record counts as committed': one(
    RESOLVE,
    "return overtakenOr(store, commit, { outcome: 'commit_refused', cause: error, ...state })",
    "return { outcome: 'committed', usedTransaction: commit.usedTransaction }",
  ),
  'whoever is overtaken sends its own answer': one(
    ANSWER,
    'if (answer.discard()) ended.answerOvertaken(outcome.by)',
    'answer.send()',
  ),
  'an undone run sends its answer': one(
    ANSWER,
    "if (answer.discard()) {\n        refuse(response, 'store_unavailable', outcome.mayRetryNow ? 0 : undefined)\n      }",
    'answer.send()',
  ),
  'a refused COMMIT sends the answer': one(
    ANSWER,
    "if (answer.discard()) next(new ServiceAuthError('commit_refused', message, { cause }))",
    'answer.send()',
  ),
  'a handler keeps its transaction': one(LIVE, 'if (at >= 0) entries.splice(at, 1)[0]?.stop()', ''),
  'a refusal commits its writes': one(STAGE, "ending.type === 'commit' || keepsWrites", 'true'),
  'a refusal may not keep its writes': one(
    STAGE,
    "ending.type === 'commit' || keepsWrites",
    "ending.type === 'commit'",
  ),
  'a failure is stored': one(
    BUFFERED,
    "if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }",
    "return { type: 'refuse', result }",
  ),
  'an error commits': one(
    BUFFERED,
    "if (status < 400) return { type: 'commit'",
    "if (status < 600) return { type: 'commit'",
  ),
  'a released key is kept': one(
    BUFFERED,
    "resolveEnding(answer.isReleased ? { type: 'roll_back' } : answerEnding)",
    'resolveEnding(answerEnding)',
  ),
  'a handler may run forever': one(
    ATTEMPT,
    'control.startTimer(store.limits.transactionMs)',
    'control.stopTimer()',
  ),
  'a run that is out of time commits': one(
    STAGE,
    "case 'running':\n    case 'writing_record':\n      return { name: 'timed_out', reason: 'timed_out' }",
    "case 'running':\n    case 'writing_record':\n      return stage",
  ),
  'the record is not written': one(
    ATTEMPT,
    'key === undefined\n      ?',
    'key !== undefined\n      ?',
  ),
  'a finding is ignored': one(
    STAGE,
    "if (result.found === 'record') return { name: 'skipped', finding: findingOf(result.record) }",
    '',
  ),
  'another body gets the answer': one(STAGE, "if (!isSame) return { outcome: 'mismatch' }", ''),
  'a running key is not answered': one(
    STAGE,
    "return { name: 'skipped', finding: { outcome: 'running' } }",
    "return { name: 'skipped', finding: { outcome: 'mismatch' } }",
  ),
  'a rollback frees the token': one(
    OUTCOME,
    'ended.then(() => consumeAfterRollback(store, usedTokens))',
    'ended',
  ),
  'a replay needs no token': one(COUPLED, 'if (!found.usedToken) {', 'if (found) {'),
  'a token is spent as often as asked': one(
    TOKENS,
    '"on conflict do nothing returning \'yes\' as consumed"',
    '"on conflict (id) do update set expires_at = excluded.expires_at returning \'yes\' as consumed"',
  ),
  'a connection in a transaction goes back to the pool': one(
    POOL,
    'client.release(isLost || !isSound)',
    'client.release()',
  ),
  'a failed statement of the server counts as an answer': one(
    STATE,
    'if (!isRolledBack && serverFailure === undefined) return undefined',
    'if (stage) return undefined',
  ),
  'a closed store still sweeps': one(STORE, 'sweeper?.close()', ''),
}
