import express from 'express'

/** What every app under test does, whatever stands before it. */
export const readOrder = (req, res) => {
  res.json({ id: req.params.id, item: 'book', quantity: 2, state: 'open' })
}

export const orderOf = ({ item, quantity }) => ({ id: '17', item, quantity, state: 'open' })

export const createOrder = (req, res) => {
  res.status(201).json(orderOf(req.body))
}

/** A read behind what verifies the token, for the whole app, and what checks the permission. */
export function readApp(verifier, permission) {
  const app = express()
  app.use(verifier)
  app.get('/orders/:id', permission, readOrder)
  return app
}

export function bareReadApp() {
  const app = express()
  app.get('/orders/:id', readOrder)
  return app
}

/** An answer of 1 KB. */
export const createLargeOrder = (req, res) => {
  res.status(201).json({ ...orderOf(req.body), note: NOTE })
}

const NOTE = 'n'.repeat(950)
