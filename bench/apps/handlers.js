import { readFileSync } from 'node:fs'
import express from 'express'

/** The module of an entry point of a build of this package. `build` is the package's folder, as a URL. */
export const importEntry = (build, name = '.') => import(entryIn(build, name).href)

export function entryIn(build, name) {
  const { exports } = JSON.parse(readFileSync(new URL('package.json', build), 'utf8'))
  return new URL(exports[name].default, build)
}

export const orderOf = ({ item, quantity }) => ({ id: '17', item, quantity, state: 'open' })

export const createOrder = (req, res) => {
  res.status(201).json(orderOf(req.body))
}

const readOrder = (req, res) => {
  res.json({ id: req.params.id, item: 'book', quantity: 2, state: 'open' })
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

export function writeApp(verifier, permission, ...handlers) {
  const app = express()
  app.use(verifier)
  app.post('/orders', permission, express.json(), ...handlers)
  return app
}
