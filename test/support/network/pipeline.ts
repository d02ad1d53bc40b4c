import { openExchange } from './raw-exchange.js'

/**
 * Sends each value as the `Authorization` header of a request of its own, all on one connection without waiting for
 * answers, and resolves with the statuses in their order.
 */
export async function pipeline(port: number, values: readonly string[]): Promise<number[]> {
  const exchange = openExchange(port)
  values.forEach((value, index) => {
    const last = index === values.length - 1 ? ['Connection: close'] : []
    exchange.send({ headers: [...last, `Authorization: ${value}`] })
  })
  const text = await exchange.closed
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
