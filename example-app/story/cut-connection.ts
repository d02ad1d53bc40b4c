import type { OpenPostgres } from '../orders/open-postgres.js'
import type { OrderBook } from '../orders/persistence.js'

/** A book that can lose the connection of an order that is written, before it is committed. */
export function cutting(book: OrderBook, { pool, store }: OpenPostgres) {
  let isCutting = false
  const cutBook: OrderBook = {
    ...book,
    async add(order, request) {
      await book.add(order, request)
      if (!isCutting) return
      isCutting = false
      const transaction = store.transactionOf(request)
      const { rows } = await transaction.query('select pg_backend_pid() as pid')
      await pool.query('select pg_terminate_backend($1)', [rows[0].pid])
    },
  }
  const cutNextCommit = () => {
    isCutting = true
  }
  return { book: cutBook, cutNextCommit }
}
