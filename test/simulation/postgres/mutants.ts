// biome-ignore-all lint/suspicious/noTemplateCurlyInString: snippets of source
import { type Mutants, mutantsOf } from '../load.js'

const LOCK = 'is_locked := pg_catalog.pg_try_advisory_xact_lock($3);'
const LOOK_UP =
  "${recordText('$2')}\n      into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;"

/** Wrong versions of the coupled store, each without one rule of the protocol. */
export const COUPLED_MUTANTS: Mutants = {
  ...mutantsOf('stores/postgres/sql/statements.ts', {
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
  ...mutantsOf('stores/postgres/sql/statements.ts', {
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
  ...mutantsOf('stores/postgres/sql/statements.ts', {
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
  ...mutantsOf('middleware/idempotency-key/run.ts', {
    'an answer is sent before COMMIT': [
      'return answer.ending\n    })',
      'const { ending, send } = answer\n      void ending.then(send)\n      return ending\n    })',
    ],
    'whoever is overtaken sends its own answer': [
      'if (!begun(answer).discard()) return',
      'return void begun(answer).send()',
    ],
    'an undone run sends its answer': [
      'if (answer === undefined || answer.discard())',
      'answer?.send()\n      if (answer === undefined)',
    ],
    'a refused COMMIT sends the answer': [
      'if (discard()) next(new ServiceAuthError(reason, message, { cause }))',
      'if (message && cause && next && discard) answer?.send()',
    ],
  }),
  ...mutantsOf('middleware/idempotency-key/answer.ts', {
    'a replay needs no token': [
      "if (settings.kind === 'leased' || (await useToken(context, settings, token)))",
      'if (settings && token !== null)',
    ],
  }),
  ...mutantsOf('stores/postgres/run/outcome.ts', {
    'a lost COMMIT is looked up without the lock': [
      'await query(store, store.statements.awaitRun(run.ids, { waitMs: leftMs }), limits)\n',
      '',
    ],
    'a lost COMMIT counts as rolled back': [
      "step === 'commit' ? 'unclear' : 'unavailable'",
      "'unavailable'",
    ],
    'a lost COMMIT counts as done': [
      'const status = await resolveCommit(store, run)',
      "const status: CommitStatus = { type: 'committed' }",
    ],
    'the record of another counts as the own': [
      'const isOwn = record.run === String(fence)',
      'const isOwn = true',
    ],
    'a failure is stored': [
      "if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }",
      "return { type: 'refuse', result }",
    ],
    'an error commits': [
      "if (status < 400) return { type: 'commit'",
      "if (status < 600) return { type: 'commit'",
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
    'a duplicate record counts as committed': [
      '(await findOvertaker(store, run, ending)) ??',
      'committed(run, ending) ??',
    ],
  }),
  ...mutantsOf('stores/postgres/run/live-runs.ts', {
    'a handler keeps its transaction': ['if (at >= 0) entries.splice(at, 1)[0]?.stop()', ''],
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
    'a failed statement of the server counts as an answer': [
      'if (!isRolledBack && serverFailure === undefined) return undefined',
      'if (ending) return undefined',
    ],
    'the record is not written': ['const last = hasKey\n', 'const last = !hasKey\n'],
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
  ...mutantsOf('stores/postgres/postgres-store.ts', {
    'a closed store still sweeps': ['sweeper?.close()', ''],
  }),
}
