// biome-ignore-all lint/suspicious/noTemplateCurlyInString: snippets of source
import type { Mutants } from '../load.js'

const LOCK = 'is_locked := pg_catalog.pg_try_advisory_xact_lock($3);'
const LOOK_UP =
  "${recordText('$2')}\n      into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;"

/** Wrong versions of the coupled store, each of which breaks another promise. */
export const COUPLED_MUTANTS: Mutants = {
  'stores/postgres/sql/statements.ts': {
    'a record that is there is ignored': [
      "values (${columns(inTransaction('$5'))})`",
      "values (${columns(inTransaction('$5'))}) on conflict do nothing`",
    ],
    'the lock and the look-up are one statement': [
      `${LOCK}\n    select ${LOOK_UP}`,
      "with locked as materialized (select pg_catalog.pg_try_advisory_xact_lock($3) as is_locked) select is_locked, found.record into is_locked, stored from locked left join lateral (select ${recordText('$2')} as record from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1) as found on true;",
    ],
    'an expired record counts as absent': [
      'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;',
      'into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1 and expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp();',
    ],
    'an idle transaction has no time limit': [
      "const TIMEOUTS = ['statement_timeout', 'idle_in_transaction_session_timeout']",
      "const TIMEOUTS = ['statement_timeout']",
    ],
  },
  'stores/postgres/sweep.ts': {
    'the sweeper deletes what has not expired': [
      'OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp()',
      'OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()',
    ],
  },
  'middleware/idempotency-key/run.ts': {
    'an answer is sent before COMMIT': [
      'return answer.ending\n    })',
      'const { ending, send } = answer\n      void ending.then(send)\n      return ending\n    })',
    ],
    'a refused COMMIT sends the answer': [
      'if (discard()) next(new ServiceAuthError(reason, message, { cause }))',
      'if (message && cause && next && discard) answer?.send()',
    ],
  },
  'middleware/idempotency-key/answer.ts': {
    'a replay needs no token': [
      'if (!settings.isCoupled || (await useToken(context, settings, token)))',
      'if (settings && token !== null)',
    ],
  },
  'stores/postgres/run/outcome.ts': {
    'a lost COMMIT counts as rolled back': [
      "step === 'commit' ? 'unclear' : 'unavailable'",
      "'unavailable'",
    ],
    'a failure is stored': [
      "if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }",
      "return { type: 'refuse', result }",
    ],
    'a refusal is recorded without its token': [
      'const used = token && { ...token, isRequired: needsToken }',
      'const used = needsToken ? undefined : token && { ...token, isRequired: needsToken }',
    ],
  },
  'stores/postgres/run/live-runs.ts': {
    'a handler keeps its transaction': ['this.isAnswered = true\n    this.#guarded?.stop()', ''],
  },
  'stores/postgres/run/run.ts': {
    'a refusal commits its writes': [
      "ending.type === 'commit' || (ending.type === 'refuse' && live.keepsWrites)",
      "ending.type !== 'roll_back'",
    ],
  },
}
