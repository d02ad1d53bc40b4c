import { render } from 'preact'
import { App } from './app.js'
import { connect } from './connection.js'
import { startClock } from './state.js'
import './styles.css'

const root = document.getElementById('room')
if (root) {
  root.replaceChildren()
  render(<App />, root)
  startClock()
  connect()
}
