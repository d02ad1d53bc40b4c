import { render } from 'preact'

const root = document.getElementById('room')
if (root) render(<p>The control room</p>, root)
