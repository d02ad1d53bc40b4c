import express from 'express'

/** What every app under test does, whatever stands before it. */
export const readOrder = (req, res) => {
  res.json({ id: req.params.id, item: 'book', quantity: 2, state: 'open' })
}

export const createOrder = (req, res) => {
  const { item, quantity } = req.body
  res.status(201).json({ id: '17', item, quantity, state: 'open' })
}

/** The app that stands for all: the guards before one read. */
export function readApp(...guards) {
  const app = express()
  app.get('/orders/:id', ...guards, readOrder)
  return app
}
