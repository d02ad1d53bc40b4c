// First: the panels' own style sheets build upon it.
import './styles.css'

import { render } from 'preact'
import { App } from './app.js'
import { connect } from './connection.js'
import { startClock } from './state.js'

const root = document.getElementById('room')
if (root) {
  root.replaceChildren()
  render(<App />, root)
  startClock()
  connect()
}
