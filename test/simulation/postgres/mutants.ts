// biome-ignore-all lint/suspicious/noTemplateCurlyInString: snippets of source
import { type Mutants, mutantsOf } from '../load.js'

const LOCK = 'is_locked := pg_catalog.pg_try_advisory_xact_lock($3);'
const LOOK_UP =
  "${recordText('$2')}\n      into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;"

/** Wrong versions of the coupled store, each without one rule of the protocol. */
export const COUPLED_MUTANTS: Mutants = {
  ...mutantsOf('stores/postgres/sql/record-statements.ts', {
    'a record that is there is ignored': [
      '`${runSql}, ${timeFromNow(retentionMs)}`,',
      '`${runSql}, ${timeFromNow(retentionMs)} on conflict do nothing`,',
    ],
    'a refusal overwrites a record': [
      "${condition} returning 'yes' as kept`",
      "${condition} on conflict (id) do update set result = excluded.result returning 'yes' as kept`",
    ],
    'a token is spent as often as asked': [
      '"on conflict do nothing returning \'yes\' as consumed"',
      '"on conflict (id) do update set expires_at = excluded.expires_at returning \'yes\' as consumed"',
    ],
  }),
  ...mutantsOf('stores/postgres/sql/begin-statements.ts', {
    'the lock and the look-up are one statement': [
      `${LOCK}\n    select ${LOOK_UP}`,
      "with locked as materialized (select pg_catalog.pg_try_advisory_xact_lock($3) as is_locked) select is_locked, found.record into is_locked, stored from locked left join lateral (select ${recordText('$2')} as record from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1) as found on true;",
    ],
    'the look-up comes before the lock': [
      `${LOCK}\n    select ${LOOK_UP}`,
      `select ${LOOK_UP}\n    ${LOCK}`,
    ],
    'no lock is taken': [LOCK, 'is_locked := true;'],
    'an expired record counts as absent': [
      'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;',
      'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1 and expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp();',
    ],
  }),
  ...mutantsOf('stores/postgres/sql/begin-statements.ts', {
    'a run begins with a used token': ["if not found then return '${USED}'; end if;", ''],
    'an idle transaction has no time limit': [
      "const TIMEOUTS = ['statement_timeout', 'idle_in_transaction_session_timeout']",
      "const TIMEOUTS = ['statement_timeout']",
    ],
  }),
  ...mutantsOf('stores/postgres/sql/literals.ts', {
    'a record lasts for seconds instead of milliseconds': [
      'Math.ceil(Math.max(0, finite(durationMs))) / 1000',
      'Math.ceil(Math.max(0, finite(durationMs))) / 1_000_000',
    ],
  }),
  ...mutantsOf('stores/postgres/sweep.ts', {
    'the sweeper deletes what has not expired': [
      'OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp()',
      'OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()',
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/run-coupled.ts', {
    'an answer is sent before COMMIT': [
      'return answer.ending\n',
      'void answer.ending.then(() => answer.send())\n      return answer.ending\n',
    ],
    'a replay needs no token': [
      "if (found.outcome === 'finished' && !(await useToken(context, settings, token))) return\n",
      '',
    ],
  }),
  ...mutantsOf('stores/postgres/run/outcome.ts', {
    'a lost COMMIT is looked up without the lock': [
      'await query(store, store.statements.awaitRun(commit.ids, { waitMs: leftMs }), limits)\n',
      '',
    ],
    'a lost COMMIT counts as rolled back': [
      "step === 'commit' ? 'unclear' : 'unavailable'",
      "'unavailable'",
    ],
    'a lost COMMIT counts as done': [
      'const status = await resolveCommit(store, commit)',
      "const status: CommitStatus = { type: 'committed' }",
    ],
    'the record of another counts as the own': [
      'const isOwn = record.run === String(fence)',
      'const isOwn = true',
    ],
    'another body gets the answer': ["if (!isSame) return { outcome: 'mismatch' }", ''],
    'a failed COMMIT counts as a failed record': [
      "step: 'commit', ending",
      "step: 'record', ending",
    ],
    'a refusal is recorded without its token': [
      'const used = token && { ...token, isRequired: needsToken }',
      'const used = needsToken ? undefined : token && { ...token, isRequired: needsToken }',
    ],
    'a refusal is recorded although its token is used': [
      'isRequired: needsToken }',
      'isRequired: false }',
    ],
    'a duplicate record counts as committed': [
      "return overtakenOr(store, commit, { outcome: 'commit_refused', cause: error, ...state })",
      "return { outcome: 'committed', usedTransaction: commit.usedTransaction }",
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/run-coupled.ts', {
    'whoever is overtaken sends its own answer': [
      "reason: 'conflict', fence })\n      if (answer.discard()) {",
      "reason: 'conflict', fence })\n      answer.send()\n      if (Boolean(0)) {",
    ],
    'an undone run sends its answer': [
      "if (answer.discard()) {\n        refuse(response, 'store_unavailable', outcome.retryAfterSeconds)\n      }",
      'answer.send()',
    ],
    'a refused COMMIT sends the answer': [
      "if (answer.discard()) next(new ServiceAuthError('commit_refused', message, { cause }))",
      'answer.send()',
    ],
  }),
  ...mutantsOf('stores/postgres/run/live-runs.ts', {
    'a handler keeps its transaction': ['if (at >= 0) entries.splice(at, 1)[0]?.stop()', ''],
  }),
  ...mutantsOf('idempotency/coupled/buffered-answer.ts', {
    'a failure is stored': [
      "if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }",
      "return { type: 'refuse', result }",
    ],
    'an error commits': [
      "if (status < 400) return { type: 'commit'",
      "if (status < 600) return { type: 'commit'",
    ],
    'a released key is kept': [
      "resolveEnding(answer.isReleased ? { type: 'roll_back' } : answerEnding)",
      'resolveEnding(answerEnding)',
    ],
  }),
  ...mutantsOf('stores/postgres/run/run.ts', {
    'a refusal commits its writes': [
      "ending.type === 'commit' || (ending.type === 'refuse' && live.keepsWrites)",
      "ending.type !== 'roll_back'",
    ],
    'a refusal may not keep its writes': [
      "ending.type === 'commit' || (ending.type === 'refuse' && live.keepsWrites)",
      "ending.type === 'commit'",
    ],
    'a run that is out of time commits': [
      'await this.#within(runner.query(tx, last.text, last.values))\n    // From here on COMMIT may be sent: by `transaction` once this function has resolved.\n    if (this.#decision !== undefined) throw ROLLBACK\n',
      'await runner.query(tx, last.text, last.values)\n',
    ],
    'a finding is ignored': [
      "if (begun.found !== 'nothing') throw this.#decide({ type: 'found', outcome: foundIn(begun) })",
      "if (begun.found === 'other_run') throw this.#decide({ type: 'found', outcome: foundIn(begun) })\n    if (begun.found !== 'nothing') begun.fence = 1",
    ],
    'a running key is not answered': [
      "return { outcome: 'running' }\n    case 'used_token'",
      "return { outcome: 'mismatch' }\n    case 'used_token'",
    ],
    'a run does not use up its token': ['      token: this.token,\n', ''],
    'a handler may run forever': [
      'this.#startTimer(this.#store.limits.transactionMs)',
      'clearTimeout(this.#timer)',
    ],
    'the record is not written': [
      'recordId === undefined\n        ?',
      'recordId !== undefined\n        ?',
    ],
  }),
  ...mutantsOf('stores/postgres/adapters/pg.ts', {
    'a client that comes late is kept': [
      "      release(true)\n      throw new Error('The connection came too late')\n",
      "      throw new Error('The connection came too late')\n",
    ],
    'a connection in a transaction goes back to the pool': [
      'client.release(isLost || !isReusable)',
      'client.release()',
    ],
  }),
  ...mutantsOf('stores/postgres/run/transaction-state.ts', {
    'a failed statement of the server counts as an answer': [
      'if (!isRolledBack && serverFailure === undefined) return undefined',
      'if (ending) return undefined',
    ],
  }),
  ...mutantsOf('stores/postgres/postgres-store.ts', {
    'a closed store still sweeps': ['sweeper?.close()', ''],
  }),
}
