import { openExchange } from '../support/network/raw-exchange.js'

const MAX_LENGTH = 30_000

/** As a header can carry it: Node's parser answers control characters itself, and hangs up. */
export const asHeaderValue = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
  value.slice(0, MAX_LENGTH).replace(/[\x00-\x08\x0a-\x1f\x7f\u0100-\uffff]/g, '?')

/**
 * Sends each value as the `Authorization` header of a request of its own, all on one connection, and
 * resolves with the statuses in their order.
 */
export async function sendAll(port: number, values: readonly string[]): Promise<number[]> {
  const exchange = openExchange(port)
  values.forEach((value, index) => {
    const last = index === values.length - 1 ? ['Connection: close'] : []
    exchange.send({ headers: [...last, `Authorization: ${value}`] })
  })
  const text = await exchange.closed
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
