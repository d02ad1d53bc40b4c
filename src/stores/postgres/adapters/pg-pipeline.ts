import { awaitAnswer } from '../deadline.js'
import type { Statement, TransactionLimits } from '../runner.js'
import { PgExchange, type StatementResult } from './pg-exchange.js'
import type { PgClientLike } from './pg-pool.js'
import { OWN_PARSERS } from './pg-values.js'

/** Sends the statements of one transaction. */
export interface PgPipeline {
  /** Sends statements in one round trip, with `begin` if nothing was sent before. */
  send(statements: readonly Statement[]): Promise<readonly StatementResult[]>
  /** Sends `begin` now, unless it was sent. */
  begin(): void
  /** Sends the statements, then `commit`. Does nothing after a commit; rejects if an earlier commit failed. */
  commit(statements?: readonly Statement[]): Promise<void>
  rollBack(): Promise<void>
}

type Send = (statements: readonly Statement[]) => Promise<readonly StatementResult[]>

export function createPgPipeline(client: PgClientLike, limits: TransactionLimits): PgPipeline {
  const { isolation, transactionMs } = limits
  const begin = { text: isolation ? `begin isolation level ${isolation}` : 'begin', values: [] }
  const takesExchanges = client.connection !== undefined && client.pipeline !== true
  const send = takesExchanges ? sendExchange(client, begin) : sendEach(client, begin)
  let committing: Promise<void> | undefined

  return {
    send: send.send,
    begin: send.begin,
    commit(statements = []) {
      const exchange = [...statements, { text: 'commit', values: [] }]
      // A COMMIT is never cancelled, but the wait for its answer is limited.
      committing ??= awaitAnswer(transactionMs, send.send(exchange)).then(checkCommit)
      return committing
    },
    async rollBack() {
      await send.send([{ text: 'rollback', values: [] }])
    },
  }
}

/** After an error that was swallowed, `commit` rolls back without an error of its own. */
function checkCommit(results: readonly StatementResult[]): void {
  const command = results.at(-1)?.command
  if (command !== 'COMMIT') throw new Error(`Postgres answered ${command} to a COMMIT.`)
}

interface ExchangeSender {
  readonly send: Send
  readonly begin: () => void
}

/**
 * Queues an exchange that sends nothing yet as the first of the client's queries. So the queries of a
 * handler come after `begin`, although `begin` waits to be sent with the first statements.
 */
function sendExchange(client: PgClientLike, begin: Statement): ExchangeSender {
  let beginExchange: PgExchange | undefined = new PgExchange()
  const begun = beginExchange.settled
  client.query(beginExchange)

  const sendBegin = (statements: readonly Statement[] = []): void => {
    beginExchange?.send([begin, ...statements])
    beginExchange = undefined
  }
  return {
    begin: sendBegin,
    async send(statements) {
      if (beginExchange) {
        sendBegin(statements)
        return (await begun).slice(1)
      }
      const exchange = new PgExchange(statements)
      client.query(exchange)
      return exchange.settled
    },
  }
}

/** For clients that cannot take an exchange: sends one query per statement, without waiting for the previous ones. */
function sendEach(client: PgClientLike, begin: Statement): ExchangeSender {
  const sendOne = async ({ text, values }: Statement): Promise<StatementResult> => {
    const { rows, command } = await client.query({ text, values, types: OWN_PARSERS })
    return { rows, command }
  }
  const begun = sendOne(begin)
  begun.catch(() => {})
  return {
    begin: () => {},
    async send(statements) {
      const sent = await Promise.allSettled([begun, ...statements.map(sendOne)])
      const failed = sent.find((each) => each.status === 'rejected')
      if (failed) throw failed.reason
      return sent.slice(1).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    },
  }
}
